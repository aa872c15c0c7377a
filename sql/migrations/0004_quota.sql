-- breaking: no
-- Quotas, and counting what waits. A quota bounds what waits, and is looked at when a job is enqueued, not when one is retried, given
-- back or moved. Enqueues do not wait for each other, so none sees what another has not committed yet: then a quota is exceeded by
-- that much.

-- The kinds of a queue of which jobs wait, one probe each.
create function :schema.kinds_waiting_v1(_queue text) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $tenantry$
begin
  return array(
    with recursive hop as (
      select '' collate "C" as kind
      union all
      select least(
        (select job.kind from :schema.job
         where job.queue = _queue and job.state = 'available' and job.kind > hop.kind order by job.kind limit 1),
        (select job.kind from :schema.job
         where job.queue = _queue and job.state = 'blocked' and job.max_attempts > 0 and job.kind > hop.kind order by job.kind limit 1),
        (select job.kind from :schema.job
         where job.queue = _queue and job.state = 'scheduled' and job.kind > hop.kind order by job.kind limit 1))
      from hop
      where hop.kind is not null
    )
    select hop.kind from hop where hop.kind <> ''
  );
end $tenantry$;

-- How many jobs of a queue, or of a tenant or a kind of it, wait; counted no further than _most.
create function :schema.count_waiting_v1(_queue text, _tenant text, _kind text, _most integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _kinds text[];
begin
  if _tenant is null and _kind is null then
    return (
      select count(*) from (
        select from (select from :schema.job where job.queue = _queue and job.state = 'available' limit _most) as available
        union all
        select from (select from :schema.job where job.queue = _queue and job.state = 'blocked' and job.max_attempts > 0 limit _most) as blocked
        union all
        select from (select from :schema.job where job.queue = _queue and job.state = 'scheduled' limit _most) as scheduled
        limit _most
      ) as waiting);
  end if;
  _kinds := case when _kind is null then :schema.kinds_waiting_v1(_queue) else array[_kind] end;
  if _tenant is null then
    return (
      select count(*) from (
        select from unnest(_kinds) as wanted (kind) cross join lateral (
          select from :schema.job where job.queue = _queue and job.kind = wanted.kind and job.state = 'available' limit _most) as available
        union all
        select from unnest(_kinds) as wanted (kind) cross join lateral (
          select from :schema.job where job.queue = _queue and job.kind = wanted.kind and job.state = 'blocked' and job.max_attempts > 0 limit _most) as blocked
        union all
        select from unnest(_kinds) as wanted (kind) cross join lateral (
          select from :schema.job where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' limit _most) as scheduled
        limit _most
      ) as waiting);
  end if;
  return (
    select count(*) from (
      select from unnest(_kinds) as wanted (kind) cross join lateral (
        select from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'available' limit _most) as available
      union all
      select from unnest(_kinds) as wanted (kind) cross join lateral (
        select from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'blocked' and job.max_attempts > 0 limit _most) as blocked
      union all
      select from unnest(_kinds) as wanted (kind) cross join lateral (
        select from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'scheduled' limit _most) as scheduled
      limit _most
    ) as waiting);
end $tenantry$;

-- When a queue, or a tenant of it, will have room for so many more jobs, by Little's law: a job that runs has, on average, half of
-- its time behind it, and as many leave as run, each in its time. From 1 s to 5 minutes; a minute if nothing runs.
create function :schema.retry_after_ms_v1(_queue text, _tenant text, _excess integer, _quota integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
declare
  _running integer;
  _seconds double precision;
begin
  if _excess > _quota then
    return 300000; -- More at once than there is room for at all.
  end if;
  select count(*), avg(date_part('epoch', clock_timestamp() - running.claimed_at)) into _running, _seconds
  from (
    select job.claimed_at from :schema.running_job as job
    where job.queue = _queue and (_tenant is null or job.tenant = _tenant)
    limit 1000
  ) as running;
  if _running = 0 then
    return 60000;
  end if;
  return least(300000, greatest(1000, 1000 * _excess * 2 * _seconds / _running))::integer;
end $tenantry$;

-- Refuses a batch of jobs where it would bring what waits over a quota: SQLSTATE TQ001, with the particulars as JSON. With the rights
-- of its owner, since a role that only enqueues may not read what it must count; it tells no more than counts.
create function :schema.check_quota_v1(_queues text[], _tenants text[]) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _given record;
  _queued integer;
begin
  for _given in
    with given as (
      select asked.queue, asked.tenant, count(*)::integer as jobs from unnest(_queues, _tenants) as asked (queue, tenant)
      group by asked.queue, asked.tenant
    )
    select 'queue' as scope, given.queue, null as tenant, given.queue as name, sum(given.jobs)::integer as jobs, queue.quota
    from given
    join :schema.queue on queue.name = given.queue
    where queue.quota is not null
    group by given.queue, queue.quota
    union all
    select 'tenant', given.queue, given.tenant, given.tenant, given.jobs, coalesce(tenant.quota, queue.tenant_quota)
    from given
    join :schema.queue on queue.name = given.queue
    left join :schema.tenant on tenant.queue = given.queue and tenant.tenant = given.tenant
    where coalesce(tenant.quota, queue.tenant_quota) is not null
  loop
    -- No further than needed: if one more than fits beside the new ones waits already, that is enough.
    _queued := case when _given.jobs > _given.quota then 0 else :schema.count_waiting_v1(_given.queue, _given.tenant, null, _given.quota - _given.jobs + 1) end;
    continue when _queued + _given.jobs <= _given.quota;
    -- Once refused, count on for the message.
    _queued := :schema.count_waiting_v1(_given.queue, _given.tenant, null, _given.quota + 1);
    raise exception 'expected at most % jobs of % "%" to wait, got % and % more', _given.quota, _given.scope, left(_given.name, 80), _queued, _given.jobs
      using errcode = 'TQ001',
        detail = jsonb_build_object('scope', _given.scope, 'queue', _given.queue, 'tenant', _given.tenant, 'quota', _given.quota, 'queued', _queued,
          'retry_after_ms', :schema.retry_after_ms_v1(_given.queue, _given.tenant, greatest(1, _queued + _given.jobs - _given.quota), _given.quota))::text,
        hint = 'Enqueue again when jobs have ended, or raise the quota.';
  end loop;
end $tenantry$;
