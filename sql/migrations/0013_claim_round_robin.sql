-- breaking: no
-- The literal round robin of the first article, kept to compare with: strict turns of one job, the tenant that was served
-- longest ago first, its jobs in order. Its cost grows with the number of tenants and it knows no weights: prefer fair.
-- Two repairs: claims take turns, for otherwise they come back empty when all tenants are locked and may serve one tenant
-- twice running; and tenants are found by a skip scan instead of a foreign key, which would block claims and enqueues.

create function :schema.claim_round_robin_v1(_queue text, _lease_id uuid, _kinds text[], _count integer) returns integer
language plpgsql
as $tenantry$
declare
  _claimed integer := 0;
  _id bigint;
  _tenant text;
  _passed_over text[] := '{}';
begin
  perform pg_advisory_xact_lock((quote_ident(:schema_literal) || '.ring')::regclass::oid::integer, hashtext(_queue));

  with recursive backlogged as (
    select wanted.kind, (
      select job.tenant from :schema.job
      where job.queue = _queue and job.kind = wanted.kind and job.state = 'available'
      order by job.tenant limit 1
    ) as tenant
    from unnest(_kinds) as wanted (kind)
    union all
    select backlogged.kind, (
      select job.tenant from :schema.job
      where job.queue = _queue and job.kind = backlogged.kind and job.state = 'available' and job.tenant > backlogged.tenant
      order by job.tenant limit 1
    )
    from backlogged
    where backlogged.tenant is not null
  )
  insert into :schema.tenant_schedule (queue, tenant, last_served_at)
  select distinct _queue, backlogged.tenant, timestamptz '-infinity'
  from backlogged
  where backlogged.tenant is not null
  on conflict (queue, tenant) do nothing;

  while _claimed < _count loop
    select schedule.tenant into _tenant
    from :schema.tenant_schedule as schedule
    where schedule.queue = _queue
      and schedule.tenant <> all (_passed_over)
      -- Not `exists`, which may become a join that reads the whole backlog.
      and (
        select available.id
        from unnest(_kinds) as wanted (kind)
        cross join lateral (
          select job.id
          from :schema.job
          where job.queue = _queue and job.kind = wanted.kind and job.tenant = schedule.tenant and job.state = 'available'
          limit 1
        ) as available
        limit 1
      ) is not null
    order by schedule.last_served_at, schedule.tenant
    limit 1;
    exit when not found;

    with oldest as materialized (
      select job.id, job.order_at
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select job.id, job.order_at
        from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'available'
        order by job.order_at, job.id
        limit 1
        for no key update skip locked
      ) as job
    )
    select oldest.id into _id from oldest order by oldest.order_at, oldest.id limit 1;
    if _id is null then
      -- Somebody else holds all its jobs.
      _passed_over := _passed_over || _tenant;
      continue;
    end if;

    update :schema.job
    set state = 'running', attempt = attempt + 1, lease_id = _lease_id, claimed_at = clock_timestamp(), charged = null
    where job.id = _id;
    update :schema.tenant_schedule as schedule set last_served_at = clock_timestamp()
    where schedule.queue = _queue and schedule.tenant = _tenant;
    _claimed := _claimed + 1;
  end loop;
  return _claimed;
end $tenantry$;
