-- breaking: no
-- Notices: what the next claim must know besides the arrival of jobs. Whoever frees a slot, measures a run or changes a setting
-- appends one, and so waits for nobody and touches no row of the ring; a claim folds them in while it holds the queue's lock.
-- A notice becomes visible with the commit that it tells of, never earlier. One can be missing: what settled a job before a limit
-- was set does not know of it, and a crash empties the table. So a claim looks again at what is parked, a lane at a time, and
-- walks along the keys.

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
  with ended as (
    select given.*, date_part('epoch', _now - given.claimed_at) as seconds, queue.limited and queue.strategy = 'fair' as limited, queue.tenant_concurrency is not null as all_limited,
           coalesce(queue.charge = 'time', false) as timed
    from unnest(_ended) as given
    left join :schema.queue on queue.name = given.queue
  ),
  noticed as (
    insert into :schema.notice (queue, kind, tenant, key, jobs, seconds, surplus)
    select distinct ended.queue, '', ended.tenant, null::text, null::integer, null::double precision, null::double precision
    from ended
    where ended.limited and (ended.all_limited or exists (
      select from :schema.tenant where tenant.queue = ended.queue and tenant.tenant = ended.tenant and tenant.concurrency is not null
    ))
    union all
    select distinct ended.queue, '', null, ended.key, null::integer, null::double precision, null::double precision
    from ended where ended.key is not null
    union all
    select ended.queue, ended.kind, ended.tenant, null, count(*), sum(ended.seconds), sum(ended.seconds - ended.charged)
    from ended
    where ended.timed and ended.charged is not null
    group by ended.queue, ended.kind, ended.tenant
  )
  select array_agg(distinct ended.queue) into _woken
  from ended
  left join :schema.queue on queue.name = ended.queue
  where queue.limited or ended.key is not null;
  if _woken is not null then
    perform :schema.wake_v1(_woken);
  end if;
end $tenantry$;

-- Folds the notices for claims of the kinds into the ring, those for all kinds first, for among them are changes of settings: 256 at
-- a time, and up to 2,048, or a limit that was lowered would act later than at the next claim where more than that happens between
-- two. In a queue that is not fair only those of keys mean anything.
create function :schema.fold_notices_v1(_queue text, _kinds text[]) returns void
language plpgsql
as $tenantry$
declare
  _tenants text[];
  _lifted text[];
  _keys text[];
  _measured boolean;
  _folded integer;
  _lane_tenants text[];
  _lane_kinds text[];
  _jobs integer[];
  _seconds double precision[];
  _surpluses double precision[];
begin
  for _round in 1..8 loop
    with folded as (
      delete from :schema.notice
      where notice.ctid = any (array(
        select head.ctid
        from unnest(''::text || _kinds) as wanted (kind)
        cross join lateral (
          select oldest.ctid from :schema.notice as oldest
          where oldest.queue = _queue and oldest.kind = wanted.kind
          order by oldest.id
          limit 256
        ) as head
        limit 256
      ))
      returning notice.*
    ),
    measured as (
      select folded.tenant, folded.kind, sum(folded.jobs)::integer as jobs, sum(folded.seconds) as seconds, sum(folded.surplus) as surplus
      from folded
      where folded.jobs is not null
      group by folded.tenant, folded.kind
    )
    select array(select distinct folded.tenant from folded where folded.jobs is null and folded.kind = '' and folded.tenant is not null),
           array(select distinct folded.kind from folded where folded.jobs is null and folded.kind <> ''),
           array(select distinct folded.key from folded where folded.key is not null),
           (select count(*) from folded),
           exists (select from measured),
           array(select measured.tenant from measured order by measured.tenant, measured.kind),
           array(select measured.kind from measured order by measured.tenant, measured.kind),
           array(select measured.jobs from measured order by measured.tenant, measured.kind),
           array(select measured.seconds from measured order by measured.tenant, measured.kind),
           array(select measured.surplus from measured order by measured.tenant, measured.kind)
    into _tenants, _lifted, _keys, _folded, _measured, _lane_tenants, _lane_kinds, _jobs, _seconds, _surpluses;
    if _measured then
      perform :schema.correct_v1(_queue, _kinds, _lane_tenants, _lane_kinds, _jobs, _seconds, _surpluses);
    end if;
    if cardinality(_lifted) > 0 then
      perform :schema.lift_v1(_queue, _kinds, _lifted);
    end if;
    if cardinality(_tenants) > 0 then
      perform :schema.unpark_v1(_queue, _kinds, _tenants);
    end if;
    if cardinality(_keys) > 0 then
      perform :schema.admit_v1(_queue, _keys);
    end if;
    exit when _folded < 256;
  end loop;
end $tenantry$;
