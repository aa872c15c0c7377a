-- name: configure_queue
-- $1 name  $2 strategy or null  $3 history or null. What is null stays as it is.
-- What came while another strategy ruled was not signalled: forget the walks, so that the next fair claim looks for all lanes.
with forgotten as (
  delete from :schema.walk where walk.queue = $1::text and $2::text is not null
)
insert into :schema.queue as queue (name, strategy, history)
values ($1::text, coalesce($2::text, 'fair'), coalesce($3::text, 'keep'))
on conflict (name) do update
set strategy = coalesce($2::text, queue.strategy), history = coalesce($3::text, queue.history)
returning name, strategy, history;

-- name: configure_tenant
-- $1 queue  $2 tenant  $3 weight
insert into :schema.tenant as tenant (queue, tenant, weight)
values ($1::text, $2::text, $3::double precision)
on conflict (queue, tenant) do update set weight = excluded.weight
returning weight;
