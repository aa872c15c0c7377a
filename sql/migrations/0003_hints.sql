-- breaking: no
-- What writers append for the next claim, so that they wait for nobody and touch no row of the ring.
--
-- Signals.    A lane has work.
-- Notices.    What else a claim must know: a slot is free, a key has work, a run was measured, a setting has changed.
--             A notice becomes visible with the commit that it tells of, never earlier. One can be missing: what settled a job
--             before a limit was set does not know of it, and a crash empties the table. So claims look again at what is parked,
--             and walk along the keys.

-- The channel on which workers of this schema listen. Derived, because a channel name has at most 63 bytes.
create function :schema.channel_v1() returns text
language sql immutable parallel safe
as $tenantry$ select pg_catalog.concat('tenantry_', pg_catalog."left"(pg_catalog.md5(:schema_literal), 24)) $tenantry$;

-- Notifies the queues in which a worker with free slots listens. A transaction sends equal notifications once.
create function :schema.wake_v1(_queues text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _queue text;
begin
  for _queue in
    select distinct given.queue
    from unnest(_queues) as given (queue)
    where exists (select from :schema.waiter where waiter.queue = given.queue)
  loop
    perform pg_notify(:schema.channel_v1(), _queue);
  end loop;
end $tenantry$;

-- Tells the next claim that these lanes have work, unless it will look there anyway: the ring holds the lane ready and looks
-- from no later a place in its order. Appends, and so waits for nobody. A claim may move on at this very moment and no signal
-- is left: the walk of discovery heals that. No signal where nobody would fold it in: queues of other strategies, and kinds
-- that no claim has asked for, whose first claim looks for itself.
create function :schema.signal_v1(_queues text[], _kinds text[], _tenants text[], _order_ats timestamptz[]) returns void
language sql
as $tenantry$
  insert into :schema.signal (queue, kind, tenant, order_at)
  select lane.queue, lane.kind, lane.tenant, lane.order_at
  from (
    select given.queue, given.kind, given.tenant, min(given.order_at) as order_at
    from unnest(_queues, _kinds, _tenants, _order_ats) as given (queue, kind, tenant, order_at)
    group by given.queue, given.kind, given.tenant
  ) as lane
  where not exists (
    select from :schema.ring
    where ring.queue = lane.queue and ring.tenant = lane.tenant and ring.kind = lane.kind
      -- A case, because it leaves the primary key as the only index. And 0, because a release may bring back any id.
      and case when ring.ready then (ring.head_at, ring.head_id) <= (lane.order_at, 0) else false end
  )
  and exists (select from :schema.walk where walk.queue = lane.queue and walk.kind = lane.kind)
  and not exists (select from :schema.queue where queue.name = lane.queue and queue.strategy <> 'fair')
$tenantry$;

-- Tells that these keys have work, or are used less.
create function :schema.notice_keys_v1(_queues text[], _keys text[]) returns void
language sql
as $tenantry$
  insert into :schema.notice (queue, kind, key)
  select distinct given.queue, '', given.key
  from unnest(_queues, _keys) as given (queue, key)
$tenantry$;

-- Tells what became free when jobs ended or were given back, and how long they ran. Wakes a worker where it may wait for that.
create function :schema.notice_ended_v1(_ended :schema.ended_job[]) returns void
language plpgsql
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _woken text[];
begin
  with ended as materialized (
    select given.*, greatest(0, date_part('epoch', _now - given.claimed_at)) as seconds from unnest(_ended) as given
  ),
  -- Looked up once for each queue, and each of its tenants.
  setting as materialized (
    select queue.name, queue.limited, queue.limited and queue.strategy = 'fair' as parks, queue.tenant_concurrency is not null as all_limited,
           queue.charge = 'time' as timed
    from (select distinct ended.queue from ended) as own
    join :schema.queue on queue.name = own.queue
  ),
  noticed as (
    insert into :schema.notice (queue, kind, tenant, key, jobs, seconds, surplus)
    select own.queue, '', own.tenant, null::text, null::integer, null::double precision, null::double precision
    from (select distinct ended.queue, ended.tenant from ended) as own
    join setting on setting.name = own.queue
    where setting.parks and (setting.all_limited or exists (
      select from :schema.tenant where tenant.queue = own.queue and tenant.tenant = own.tenant and tenant.concurrency is not null
    ))
    union all
    select distinct ended.queue, '', null, ended.key, null::integer, null::double precision, null::double precision
    from ended where ended.key is not null
    union all
    select ended.queue, ended.kind, ended.tenant, null, count(*), sum(ended.seconds), sum(ended.seconds - ended.charged)
    from ended
    join setting on setting.name = ended.queue
    where setting.timed and ended.charged is not null
    group by ended.queue, ended.kind, ended.tenant
  )
  select array(select setting.name from setting where setting.limited union select ended.queue from ended where ended.key is not null)
  into _woken;
  if cardinality(_woken) > 0 then
    perform :schema.wake_v1(_woken);
  end if;
end $tenantry$;
