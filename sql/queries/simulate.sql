-- name: simulate_state
-- $1 queue  $2 jobs of each lane at most  $3 jobs in all at most. One row: what the next claims of the queue depend on, as JSON. One
-- statement and so one snapshot; it writes nothing and waits for nobody.
select pg_catalog.json_build_object(
  'now_ms', pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()) * 1000,
  'queue', (select pg_catalog.row_to_json(own) from :schema.queue as own where own.name = $1::text),
  'tenants', (select pg_catalog.json_agg(pg_catalog.row_to_json(own)) from :schema.tenant as own where own.queue = $1),
  'groups', (select pg_catalog.json_agg(pg_catalog.row_to_json(own)) from :schema.tenant_group as own where own.queue = $1),
  'kinds', (select pg_catalog.json_agg(pg_catalog.row_to_json(own)) from :schema.kind as own where own.queue = $1),
  'keys', (select pg_catalog.json_agg(pg_catalog.row_to_json(own)) from :schema.key as own where own.queue = $1),
  'buckets', (
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'scope', bucket.scope, 'name', bucket.name, 'full_at_ms', pg_catalog.date_part('epoch', bucket.full_at) * 1000))
    from :schema.bucket where bucket.queue = $1
  ),
  'lanes', (
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'tenant', ring.tenant, 'kind', ring.kind, 'grp', ring.grp, 'pass', ring.pass, 'ready', ring.ready,
      'parked', ring.parked_until is not null, 'seconds', ring.seconds,
      'parked_until_ms', case when ring.parked_until < 'infinity' then pg_catalog.date_part('epoch', ring.parked_until) * 1000 end))
    from :schema.ring where ring.queue = $1
  ),
  'nodes', (
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'grp', group_ring.grp, 'kind', group_ring.kind, 'pass', group_ring.pass, 'ready', group_ring.ready))
    from :schema.group_ring where group_ring.queue = $1
  ),
  'expected', (
    select pg_catalog.json_agg(pg_catalog.json_build_object('kind', walk.kind, 'seconds', walk.seconds))
    from :schema.walk where walk.queue = $1 and walk.seconds is not null
  ),
  'running', (
    select pg_catalog.json_agg(pg_catalog.json_build_object('tenant', busy.tenant, 'kind', busy.kind, 'key', busy.key, 'jobs', busy.jobs))
    from (
      select job.tenant, job.kind, job.key, count(*) as jobs
      from :schema.job where job.queue = $1 and job.state = 'running'
      group by job.tenant, job.kind, job.key
    ) as busy
  ),
  'jobs', (
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'id', waiting.id::text, 'tenant', waiting.tenant, 'kind', waiting.kind, 'key', waiting.key, 'state', waiting.state,
      'order_at_ms', pg_catalog.date_part('epoch', waiting.order_at) * 1000) order by waiting.id)
    from (
      -- The lanes that are served first, first, since the number of jobs is bounded.
      select head.id, lane.tenant, lane.kind, head.key, head.state, head.order_at
      from (
        (select ring.tenant, ring.kind from :schema.ring where ring.queue = $1 order by ring.ready desc, ring.pass)
        union all
        (select signal.tenant, signal.kind from :schema.signal
         where signal.queue = $1 and not exists (
           select from :schema.ring where ring.queue = $1 and ring.tenant = signal.tenant and ring.kind = signal.kind
         )
         group by signal.tenant, signal.kind)
        union all
        -- Kinds that no claim has asked for yet have neither ring nor signals: one probe for each of their tenants.
        (with recursive waiting_kind as (
           (select job.kind from :schema.job where job.queue = $1 and job.state = 'available' order by job.kind limit 1)
           union all
           select (
             select job.kind from :schema.job
             where job.queue = $1 and job.state = 'available' and job.kind > waiting_kind.kind
             order by job.kind limit 1
           )
           from waiting_kind where waiting_kind.kind is not null
         ),
         hop as (
           select waiting_kind.kind, '' collate "C" as tenant
           from waiting_kind
           where waiting_kind.kind is not null and not exists (
             select from :schema.walk where walk.queue = $1 and walk.kind = waiting_kind.kind
           )
           union all
           select hop.kind, (
             select job.tenant from :schema.job
             where job.queue = $1 and job.state = 'available' and job.kind = hop.kind and job.tenant > hop.tenant
             order by job.tenant limit 1
           )
           from hop where hop.tenant is not null
         )
         select hop.tenant, hop.kind from hop
         where hop.tenant > '' and not exists (
           select from :schema.signal where signal.queue = $1 and signal.kind = hop.kind and signal.tenant = hop.tenant
         )
         limit 5000)
      ) as lane
      cross join lateral (
        select job.id, job.key, job.state::text as state, job.order_at
        from :schema.job
        where job.queue = $1 and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
        order by job.order_at, job.id
        limit $2::integer
      ) as head
      limit $3::integer
    ) as waiting
  ),
  'keyed', (
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'id', waiting.id::text, 'tenant', waiting.tenant, 'kind', waiting.kind, 'key', waiting.key, 'state', waiting.state,
      'order_at_ms', pg_catalog.date_part('epoch', waiting.order_at) * 1000) order by waiting.id)
    from (
      select job.id, job.tenant, job.kind, job.key, job.state::text as state, job.order_at
      from :schema.job
      where job.queue = $1 and job.key is not null and job.state = 'blocked'
      order by job.order_at, job.id
      limit $3::integer
    ) as waiting
  )
)::text as state;
