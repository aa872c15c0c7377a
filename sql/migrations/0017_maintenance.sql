-- breaking: no
-- Chores that any worker may run at any time.

-- Forgets idle lanes, but none that is parked, which has jobs: those whose pass is not above where a lane that comes back would start
-- anyway. Where time is charged, none whose tenant runs a job, for when that ends its pass may rise. At most _limit a call,
-- queue by queue under its lock, or not at all when the queue is busy. Also forgets workers that listen no more: they come back
-- with their next claim.
create function :schema.prune_ring_v1(_limit integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _queue text;
  _kind text;
  _floor double precision;
  _batch integer;
  _running text[];
  _forgotten integer := 0;
begin
  delete from :schema.waiter where waiter.seen_at < clock_timestamp() - interval '5 minutes';
  for _queue in select distinct walk.queue from :schema.walk loop
    continue when not pg_try_advisory_xact_lock((quote_ident(:schema_literal) || '.ring')::regclass::oid::integer, hashtext(_queue));
    _running := '{}';
    if exists (select from :schema.queue where queue.name = _queue and queue.charge = 'time') then
      _running := array(
        select job.tenant from :schema.running_job as job where job.queue = _queue
        union
        select notice.tenant from :schema.notice where notice.queue = _queue and notice.jobs is not null
      );
    end if;
    for _kind in select walk.kind from :schema.walk where walk.queue = _queue loop
      -- The highest idle pass stays: it is where a new busy period begins.
      select coalesce(
        (select ring.pass from :schema.ring where ring.queue = _queue and ring.kind = _kind and ring.ready order by ring.pass limit 1),
        (select ring.pass from :schema.ring where ring.queue = _queue and ring.kind = _kind and not ring.ready and ring.parked_until is null order by ring.pass desc limit 1) - 1
      ) into _floor;
      delete from :schema.ring
      where ring.ctid = any (array(
        select idle.ctid from :schema.ring as idle
        where idle.queue = _queue and idle.kind = _kind and not idle.ready and idle.parked_until is null and idle.pass <= _floor
          and idle.tenant <> all (_running)
        order by idle.pass
        limit _limit - _forgotten
      ));
      get diagnostics _batch = row_count;
      _forgotten := _forgotten + _batch;
      if _forgotten >= _limit then
        return _forgotten;
      end if;
    end loop;
  end loop;
  return _forgotten;
end $tenantry$;

-- Brings back, expired, the rows of leases that running jobs name and that are not there. None should be missing; if one ever
-- is, its jobs would run for ever in the eyes of the queue. Answers with how many were brought back.
create function :schema.heal_leases_v1() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _healed integer;
begin
  insert into :schema.lease (id, queue, worker_id, claimed_at, expires_at)
  select job.lease_id, min(job.queue), 'unknown', clock_timestamp(), clock_timestamp()
  from :schema.job
  where job.state = 'running'
    and not exists (select from :schema.lease where lease.id = job.lease_id)
  group by job.lease_id
  on conflict (id) do nothing;
  get diagnostics _healed = row_count;
  return _healed;
end $tenantry$;
