-- breaking: no
-- What operators see of the tenants and queues: see docs/numbers.md for what each number means and how exact it is.
--
-- Everything is computed when it is read: from the jobs (how many wait and run), the ring (who is next), the settings, and what
-- workers recorded in the last minutes (worker_window). A reader takes no lock that anybody waits for.

-- Only what waits for a key is in it. Its statements say `attempt >= 0`, so that no other statement is served by it: see job_fifo.
create index job_blocked on :schema.job (queue, tenant) where state = 'blocked' and attempt >= 0;

create view :schema.tenant_window as
select worker_window.queue, worker_window.window_at, counted.tenant,
       sum(counted.started) as started, sum(counted.completed) as completed, sum(counted.failed) as failed,
       sum(counted.busy_seconds::double precision) as busy_seconds
from :schema.worker_window
cross join lateral unnest(worker_window.tenants, worker_window.started, worker_window.completed, worker_window.failed, worker_window.busy_seconds)
  as counted (tenant, started, completed, failed, busy_seconds)
group by worker_window.queue, worker_window.window_at, counted.tenant;

comment on view :schema.tenant_window is 'What each tenant got in each minute of the last hour, of all workers together.';

create view :schema.tenant_histogram as
select worker_window.queue, worker_window.window_at, owner.tenant, counted.measure, counted.bucket,
       case counted.bucket when 0 then 0 else power(2, (counted.bucket - 1) / 4.0)::double precision end as from_ms,
       power(2, counted.bucket / 4.0)::double precision as to_ms,
       sum(counted.jobs) as jobs
from :schema.worker_window
cross join lateral (
  select 'wait' as measure, wait.place, wait.bucket, wait.jobs
  from unnest(worker_window.wait_places, worker_window.wait_buckets, worker_window.wait_jobs) as wait (place, bucket, jobs)
  union all
  select 'run', run.place, run.bucket, run.jobs
  from unnest(worker_window.run_places, worker_window.run_buckets, worker_window.run_jobs) as run (place, bucket, jobs)
) as counted
join lateral unnest(worker_window.tenants) with ordinality as owner (tenant, place) on owner.place = counted.place
group by worker_window.queue, worker_window.window_at, owner.tenant, counted.measure, counted.bucket;

comment on view :schema.tenant_histogram is 'How many jobs of each tenant waited (wait: from being due to being claimed) or ran (run) for how long, in each minute of the last hour.';

-- The lanes of a queue that have jobs which wait, with the longest wait that their tenant's objective allows. From lane to lane
-- along the indexes, a probe for each. ready_at: since when the job is due that is next (the oldest, unless priorities say
-- otherwise), if it is; waiting_at: the same, but not before it was enqueued.
create function :schema.waiting_lanes_v1(_queue text) returns table (
  state text, kind text, tenant text, ready_at timestamptz, waiting_at timestamptz, objective_ms double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _objective_ms double precision;
begin
  select queue.objective_wait_ms into _objective_ms from :schema.queue where queue.name = _queue;
  return query
  with recursive
  ready (kind, tenant, run_at, created_at) as (
    (select job.kind, job.tenant, job.run_at, job.created_at from :schema.job
     where job.queue = _queue and job.state = 'available'
     order by job.kind, job.tenant, job.order_at, job.id
     limit 1)
    union all
    select next.kind, next.tenant, next.run_at, next.created_at
    from ready
    cross join lateral (
      select job.kind, job.tenant, job.run_at, job.created_at from :schema.job
      where job.queue = _queue and job.state = 'available' and (job.kind, job.tenant) > (ready.kind, ready.tenant)
      order by job.kind, job.tenant, job.order_at, job.id
      limit 1
    ) as next
  ),
  later (kind, tenant, run_at, created_at) as (
    (select job.kind, job.tenant, job.run_at, job.created_at from :schema.job
     where job.queue = _queue and job.state = 'scheduled'
     order by job.kind, job.tenant, job.run_at, job.id
     limit 1)
    union all
    select next.kind, next.tenant, next.run_at, next.created_at
    from later
    cross join lateral (
      select job.kind, job.tenant, job.run_at, job.created_at from :schema.job
      where job.queue = _queue and job.state = 'scheduled' and (job.kind, job.tenant) > (later.kind, later.tenant)
      order by job.kind, job.tenant, job.run_at, job.id
      limit 1
    ) as next
  ),
  keyed (tenant) as (
    (select job.tenant from :schema.job
     where job.queue = _queue and job.state = 'blocked' and job.attempt >= 0
     order by job.tenant
     limit 1)
    union all
    select next.tenant
    from keyed
    cross join lateral (
      select job.tenant from :schema.job
      where job.queue = _queue and job.state = 'blocked' and job.attempt >= 0 and job.tenant > keyed.tenant
      order by job.tenant
      limit 1
    ) as next
  )
  select lane.state, lane.kind, lane.tenant, lane.run_at, greatest(lane.run_at, lane.created_at),
         coalesce(tenant.objective_wait_ms, tenant_group.objective_wait_ms, _objective_ms)
  from (
    select 'available' as state, ready.kind, ready.tenant, ready.run_at, ready.created_at from ready
    union all
    -- What is due and not yet promoted is ready for whoever waits for it.
    select 'scheduled', later.kind, later.tenant, later.run_at, later.created_at from later where later.run_at <= _now
    union all
    select 'scheduled', later.kind, later.tenant, null, null from later where later.run_at > _now
    union all
    select 'blocked', '', keyed.tenant, null, null from keyed
  ) as lane
  left join :schema.tenant on tenant.queue = _queue and tenant.tenant = lane.tenant
  left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = tenant.grp;
end $tenantry$;

-- How many jobs wait in each of the lanes given, up to _cap of each, and how many of those that are ready have waited for longer
-- than is given for the lane.
create function :schema.count_lanes_v1(
  _queue text, _states text[], _kinds text[], _tenants text[], _objectives_ms double precision[], _cap integer,
  out jobs integer[], out overdue integer[]
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
begin
  select array_agg(head.jobs order by lane.place), array_agg(head.overdue order by lane.place)
  into jobs, overdue
  from unnest(_states, _kinds, _tenants, _objectives_ms) with ordinality as lane (state, kind, tenant, objective_ms, place)
  cross join lateral (
    -- By order_at, which is in the index: but for priorities it is the time at which a job is due.
    select count(*)::integer as jobs,
           count(*) filter (where waiting.order_at < _now - lane.objective_ms * interval '1 millisecond')::integer as overdue
    from (
      (select job.order_at from :schema.job
       where lane.state = 'available' and job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
       order by job.order_at, job.id
       limit _cap)
      union all
      (select null from :schema.job
       where lane.state = 'scheduled' and job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'scheduled'
       order by job.run_at, job.id
       limit _cap)
      union all
      (select null from :schema.job
       where lane.state = 'blocked' and job.queue = _queue and job.tenant = lane.tenant and job.state = 'blocked' and job.attempt >= 0
       limit _cap)
    ) as waiting
  ) as head;
end $tenantry$;

-- How much of each tenant waits. Counts at most about _budget jobs in all, so that the cost has a bound whatever the backlogs are: every
-- lane is counted up to its even part of half of that, and those that have more share what is left. `capped` says that a tenant has
-- more than was counted.
create function :schema.backlog_v1(_queue text, _budget integer) returns table (
  tenant text, available bigint, blocked bigint, scheduled bigint, capped boolean, ready_at timestamptz, overdue bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $tenantry$
declare
  _states text[];
  _kinds text[];
  _tenants text[];
  _ready_ats timestamptz[];
  _objectives_ms double precision[];
  _jobs integer[];
  _overdue integer[];
  _cap integer;
  _deep integer[];
  _deep_cap integer;
  _deep_jobs integer[];
  _deep_overdue integer[];
begin
  select array_agg(lane.state), array_agg(lane.kind), array_agg(lane.tenant), array_agg(lane.ready_at), array_agg(lane.objective_ms)
  into _states, _kinds, _tenants, _ready_ats, _objectives_ms
  from :schema.waiting_lanes_v1(_queue) as lane;
  if _states is null then
    return;
  end if;
  _cap := greatest(1, _budget / 2 / cardinality(_states));
  select counted.jobs, counted.overdue into _jobs, _overdue
  from :schema.count_lanes_v1(_queue, _states, _kinds, _tenants, _objectives_ms, _cap) as counted;

  _deep := array(select lane.place from unnest(_jobs) with ordinality as lane (jobs, place) where lane.jobs >= _cap);
  _deep_cap := (_budget - (select sum(lane.jobs) from unnest(_jobs) as lane (jobs))) / nullif(cardinality(_deep), 0);
  -- Not for a little more of each.
  if _deep_cap > 2 * _cap then
    select counted.jobs, counted.overdue into _deep_jobs, _deep_overdue
    from (
      select array_agg(lane.state order by lane.place) as states, array_agg(lane.kind order by lane.place) as kinds,
             array_agg(lane.tenant order by lane.place) as tenants, array_agg(lane.objective_ms order by lane.place) as objectives_ms
      from unnest(_states, _kinds, _tenants, _objectives_ms, _jobs) with ordinality as lane (state, kind, tenant, objective_ms, jobs, place)
      where lane.jobs >= _cap
    ) as deep
    cross join lateral :schema.count_lanes_v1(_queue, deep.states, deep.kinds, deep.tenants, deep.objectives_ms, _deep_cap) as counted;
  end if;

  return query
  select lane.tenant,
         coalesce(sum(lane.jobs) filter (where lane.state = 'available'), 0)::bigint,
         coalesce(sum(lane.jobs) filter (where lane.state = 'blocked'), 0)::bigint,
         coalesce(sum(lane.jobs) filter (where lane.state = 'scheduled'), 0)::bigint,
         bool_or(lane.capped), min(lane.ready_at), sum(lane.overdue)::bigint
  from (
    select each.state, each.tenant, each.ready_at, coalesce(deep.jobs, each.jobs) as jobs, coalesce(deep.overdue, each.overdue) as overdue,
           coalesce(deep.jobs >= _deep_cap, each.jobs >= _cap) as capped
    from unnest(_states, _tenants, _ready_ats, _jobs, _overdue) with ordinality as each (state, tenant, ready_at, jobs, overdue, place)
    left join unnest(_deep, _deep_jobs, _deep_overdue) as deep (place, jobs, overdue) on deep.place = each.place
  ) as lane
  group by lane.tenant;
end $tenantry$;

-- What each tenant of a queue was given since _since, with the percentiles of how long its jobs waited and ran, and how many of
-- those that started did so within the objective of the tenant.
create function :schema.received_v1(_queue text, _since timestamptz) returns table (
  tenant text, started bigint, completed bigint, failed bigint, busy_seconds double precision,
  wait_p50_ms double precision, wait_p95_ms double precision, wait_p99_ms double precision,
  run_p50_ms double precision, run_p95_ms double precision, run_p99_ms double precision,
  within_objective double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
-- What is joined here comes from arrays, whose size the planner does not know: a nested loop over it would be quadratic.
set enable_nestloop = off
set enable_mergejoin = off
set enable_sort = off
set work_mem = '64MB'
set jit = off
as $tenantry$
declare
  _objective_ms double precision;
begin
  select queue.objective_wait_ms into _objective_ms from :schema.queue where queue.name = _queue;
  return query
  with part as materialized (
    select row_number() over () as number, worker_window.*
    from :schema.worker_window
    where worker_window.queue = _queue and worker_window.window_at >= _since
  ),
  owner as materialized (
    select part.number, owner.place, owner.tenant
    from part cross join lateral unnest(part.tenants) with ordinality as owner (tenant, place)
  ),
  -- A number for each tenant: there may be a hundred times as many buckets as tenants, and numbers are summed up faster than by names.
  known as materialized (
    select distinct_owner.tenant, (row_number() over ())::integer as number
    from (select distinct owner.tenant from owner) as distinct_owner
  ),
  numbered as materialized (
    select owner.number, array_agg(known.number order by owner.place) as tenants
    from owner
    join known on known.tenant = owner.tenant
    group by owner.number
  ),
  counted as materialized (
    select count.tenant as number, sum(count.started)::bigint as started, sum(count.completed)::bigint as completed,
           sum(count.failed)::bigint as failed, sum(count.busy_seconds::double precision) as busy_seconds
    from part
    join numbered on numbered.number = part.number
    cross join lateral unnest(numbered.tenants, part.started, part.completed, part.failed, part.busy_seconds)
      as count (tenant, started, completed, failed, busy_seconds)
    group by count.tenant
  ),
  -- Both histograms of a tenant: those of its waits under twice its number, those of its runs under that and one. 128 is more than
  -- there are buckets.
  bucket as materialized (
    select timed.place / 128 as histogram, timed.place % 128 as bucket, sum(timed.jobs)::integer as jobs
    from (
      select numbered.tenants[wait.place] * 256 + wait.bucket as place, wait.jobs
      from part
      join numbered on numbered.number = part.number
      cross join lateral unnest(part.wait_places, part.wait_buckets, part.wait_jobs) as wait (place, bucket, jobs)
      union all
      select numbered.tenants[run.place] * 256 + 128 + run.bucket, run.jobs
      from part
      join numbered on numbered.number = part.number
      cross join lateral unnest(part.run_places, part.run_buckets, part.run_jobs) as run (place, bucket, jobs)
    ) as timed
    group by timed.place
  ),
  ranked as (
    select bucket.histogram,
           -- The middle of the bucket on its scale: see src/numbers/histogram.ts.
           case bucket.bucket when 0 then 1 else power(2, (bucket.bucket - 0.5::double precision) / 4) end as middle_ms,
           sum(bucket.jobs) over (partition by bucket.histogram order by bucket.bucket) as upto,
           sum(bucket.jobs) over (partition by bucket.histogram) as of
    from bucket
  ),
  percentile as (
    select ranked.histogram,
           min(ranked.middle_ms) filter (where ranked.upto * 100 >= ranked.of * 50) as p50_ms,
           min(ranked.middle_ms) filter (where ranked.upto * 100 >= ranked.of * 95) as p95_ms,
           min(ranked.middle_ms) filter (where ranked.upto * 100 >= ranked.of * 99) as p99_ms
    from ranked
    group by ranked.histogram
  ),
  objective as materialized (
    select known.tenant, known.number,
           case when tenant.objective_wait_ms is not null then tenant.objective_wait_ms
                when tenant_group.objective_wait_ms is not null then tenant_group.objective_wait_ms else _objective_ms end as wait_ms
    from known
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = known.tenant
    left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = tenant.grp
  ),
  reached as (
    -- Of the bucket in which the objective lies, as much as lies below it, as if the times in it were spread evenly.
    select objective.number,
           sum(bucket.jobs * least(1, greatest(0, (objective.wait_ms - edge.from_ms) / (edge.to_ms - edge.from_ms)))) as within_objective
    from objective
    join bucket on bucket.histogram = objective.number * 2
    cross join lateral (
      select case bucket.bucket when 0 then 0 else power(2, (bucket.bucket - 1) / 4::double precision) end as from_ms,
             power(2, bucket.bucket / 4::double precision) as to_ms
    ) as edge
    where objective.wait_ms is not null
    group by objective.number
  )
  select objective.tenant, counted.started, counted.completed, counted.failed, counted.busy_seconds,
         wait.p50_ms, wait.p95_ms, wait.p99_ms, run.p50_ms, run.p95_ms, run.p99_ms, reached.within_objective
  from objective
  join counted on counted.number = objective.number
  left join percentile as wait on wait.histogram = objective.number * 2
  left join percentile as run on run.histogram = objective.number * 2 + 1
  left join reached on reached.number = objective.number;
end $tenantry$;

-- Where the tenants of a queue stand in its ring. lag is how much service the tenant is ahead of the one that is next among the
-- ungrouped tenants, or among those of its group: so much they get before it is served again, in jobs (or seconds, in a queue
-- that charges time) of its own weight. Starved: it has a ready lane, and more than a second after that became ready or was last
-- served, a claim served another tenant of the same kind and parent whose turn began at a larger pass. No claim does that: see
-- docs/fairness.md. A turn takes at most 63 jobs, so such a turn began no lower than the pass it ended with, less 64 jobs: one more, since passes are
-- rounded. Where time is
-- charged, the correction of an estimate raises a pass as well, until the next claim: so there it is not a second but a minute, unless _grace says otherwise.
create function :schema.standing_v1(_queue text, _grace interval default null) returns table (
  tenant text, pass double precision, lag double precision, parked boolean, starved boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
set work_mem = '64MB'
set jit = off
as $tenantry$
declare
  _charge text;
begin
  select queue.charge into _charge from :schema.queue where queue.name = _queue;
  return query
  with lane as materialized (
    select ring.tenant, ring.kind, ring.grp, ring.pass, ring.ready, ring.parked_until is not null as parked,
           ring.served_at, greatest(ring.entered_at, ring.served_at) as since, coalesce(tenant.weight, 1) as weight,
           min(ring.pass) over (partition by ring.tenant)
             - 64 * case _charge when 'time' then coalesce(ring.seconds, walk.seconds, 1) else 1 end / coalesce(tenant.weight, 1) as turn_began
    from :schema.ring
    left join :schema.tenant on tenant.queue = ring.queue and tenant.tenant = ring.tenant
    left join :schema.walk on walk.queue = ring.queue and walk.kind = ring.kind
    where ring.queue = _queue
  ),
  -- For each ready lane, when those were last served whose turns began beyond its pass.
  compared as (
    select point.tenant, point.is_lane, point.since,
           max(point.served_at) over (
             partition by point.grp, point.kind order by point.at desc, point.is_lane desc
             rows between unbounded preceding and 1 preceding
           ) as beyond_served_at
    from (
      select lane.tenant, lane.grp, lane.kind, lane.pass as at, true as is_lane, lane.since, null::timestamptz as served_at
      from lane where lane.ready
      union all
      select lane.tenant, lane.grp, lane.kind, lane.turn_began, false, null, lane.served_at
      from lane where lane.served_at is not null
    ) as point
    -- A turn charges the lanes of all kinds of the claim, also of one that is paused or has no room: whoever has only that one waits
    -- for the kind, and was not passed over.
    where not exists (select from :schema.kind where kind.queue = _queue and kind.kind = point.kind)
  ),
  passed_over as (
    select distinct compared.tenant from compared
    where compared.is_lane and compared.beyond_served_at > compared.since + coalesce(_grace, case _charge when 'time' then interval '1 minute' else interval '1 second' end)
  ),
  owner as (
    select lane.tenant, lane.grp, lane.weight, bool_or(lane.parked) as parked, bool_or(lane.ready) as ready,
           coalesce(max(lane.pass) filter (where lane.ready), max(lane.pass)) as pass
    from lane
    group by lane.tenant, lane.grp, lane.weight
  )
  select owner.tenant, owner.pass,
         (owner.pass - min(owner.pass) filter (where owner.ready) over (partition by owner.grp)) * owner.weight,
         owner.parked and not owner.ready, passed_over.tenant is not null
  from owner
  left join passed_over on passed_over.tenant = owner.tenant;
end $tenantry$;

-- How many jobs of each tenant run: by way of the leases, whatever the planner believes of the jobs.
create function :schema.running_v1(_queue text) returns table (tenant text, jobs bigint)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $tenantry$
begin
  return query
  select running_job.tenant, count(*) from :schema.running_job where running_job.queue = _queue group by running_job.tenant;
end $tenantry$;

-- The tenants of a queue that have jobs, settings, or were served in the last _minutes full minutes and the current one. What waits is counted
-- up to about _budget jobs in all.
create function :schema.tenants_v1(_queue text, _budget integer default 500000, _minutes integer default 5) returns table (
  tenant text, grp text, weight double precision, paused boolean, parked boolean, concurrency integer, rate_per_second double precision,
  available bigint, blocked bigint, scheduled bigint, capped boolean, running bigint, oldest_seconds double precision,
  pass double precision, pass_lag double precision, starved boolean, noisy boolean,
  started bigint, completed bigint, failed bigint, busy_seconds double precision,
  received_share double precision, entitled_share double precision,
  wait_p50_ms double precision, wait_p95_ms double precision, wait_p99_ms double precision,
  run_p50_ms double precision, run_p95_ms double precision, run_p99_ms double precision,
  objective_wait_ms double precision, objective_share double precision, objective_reached double precision, objective_met boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
set work_mem = '64MB'
set jit = off
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _settings :schema.queue;
begin
  if coalesce(_budget, 0) not between 1 and 100000000 then
    raise exception 'expected the number of jobs to count to be from 1 to 100000000, got %', coalesce(_budget::text, 'null') using errcode = 'invalid_parameter_value';
  end if;
  if coalesce(_minutes, -1) not between 0 and 60 then
    raise exception 'expected the minutes to be from 0 to 60, got %', coalesce(_minutes::text, 'null') using errcode = 'invalid_parameter_value';
  end if;
  select queue.* into _settings from :schema.queue where queue.name = _queue;
  return query
  with backlog as materialized (select * from :schema.backlog_v1(_queue, _budget)),
  received as materialized (
    select * from :schema.received_v1(_queue, date_trunc('minute', _now) - _minutes * interval '1 minute')
  ),
  standing as materialized (select * from :schema.standing_v1(_queue)),
  running as materialized (select * from :schema.running_v1(_queue)),
  own as materialized (select * from :schema.tenant where tenant.queue = _queue),
  known as (
    select backlog.tenant from backlog
    union select received.tenant from received
    union select running.tenant from running
    union select own.tenant from own
  ),
  joined as materialized (
    select known.tenant, own.grp, coalesce(own.weight, 1) as weight, coalesce(tenant_group.weight, 1) as group_weight,
           own.paused_at is not null or _settings.paused_at is not null as paused, coalesce(standing.parked, false) as parked,
           coalesce(own.concurrency, _settings.tenant_concurrency) as concurrency,
           coalesce(own.rate_per_second, _settings.tenant_rate_per_second) as rate_per_second,
           coalesce(backlog.available, 0) as available, coalesce(backlog.blocked, 0) as blocked, coalesce(backlog.scheduled, 0) as scheduled,
           coalesce(backlog.capped, false) as capped, coalesce(running.jobs, 0) as running,
           case when backlog.ready_at is not null then greatest(0, date_part('epoch', _now - backlog.ready_at)) end as oldest_seconds, backlog.overdue,
           standing.pass, standing.lag, coalesce(standing.starved, false) as starved,
           coalesce(received.started, 0) as started, coalesce(received.completed, 0) as completed, coalesce(received.failed, 0) as failed,
           coalesce(received.busy_seconds, 0) as busy_seconds,
           case _settings.charge when 'time' then coalesce(received.busy_seconds, 0) else coalesce(received.started, 0) end as service,
           received.wait_p50_ms, received.wait_p95_ms, received.wait_p99_ms, received.run_p50_ms, received.run_p95_ms, received.run_p99_ms,
           received.within_objective,
           case when own.objective_wait_ms is not null then own.objective_wait_ms
                when tenant_group.objective_wait_ms is not null then tenant_group.objective_wait_ms else _settings.objective_wait_ms end as objective_wait_ms,
           case when own.objective_wait_ms is not null then own.objective_share
                when tenant_group.objective_wait_ms is not null then tenant_group.objective_share else _settings.objective_share end as objective_share
    from known
    left join own on own.tenant = known.tenant
    left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = own.grp
    left join backlog on backlog.tenant = known.tenant
    left join running on running.tenant = known.tenant
    left join received on received.tenant = known.tenant
    left join standing on standing.tenant = known.tenant
  ),
  -- Those among whom the queue was shared: they were served, or wait and may be.
  sharing as (
    select joined.*,
           joined.started > 0 or joined.busy_seconds > 0 or joined.running > 0
             or joined.available > 0 and not joined.paused and not joined.parked as shares
    from joined
  ),
  entitled as (
    select sharing.*,
           sum(sharing.weight) filter (where sharing.shares) over (partition by sharing.grp) as weight_in_group,
           -- Each group once, by whichever of its tenants is counted first.
           case when not sharing.shares then 0
                when sharing.grp is null then sharing.weight
                when row_number() over (partition by sharing.grp, sharing.shares order by sharing.tenant) = 1 then sharing.group_weight
                else 0 end as weight_at_top
    from sharing
  ),
  totals as (
    select entitled.*, sum(entitled.weight_at_top) over () as all_weights, sum(entitled.service) over () as all_service,
           sum(entitled.running) over () as all_running, sum(entitled.busy_seconds) over () as all_busy
    from entitled
  ),
  judged as (
    select totals.*,
           case when totals.objective_wait_ms is null then null
                when totals.paused and totals.started > 0 then totals.within_objective / totals.started
                when totals.started + coalesce(totals.overdue, 0) > 0 and not totals.paused
                  then coalesce(totals.within_objective, 0) / (totals.started + coalesce(totals.overdue, 0)) end as objective_reached
    from totals
  )
  select judged.tenant, judged.grp, judged.weight, judged.paused, judged.parked, judged.concurrency, judged.rate_per_second,
         judged.available, judged.blocked, judged.scheduled, judged.capped, judged.running,
         judged.oldest_seconds,
         judged.pass, judged.lag, judged.starved and not judged.paused,
         judged.running >= 30 and judged.running > 0.1 * judged.all_running or judged.busy_seconds > 0.1 * judged.all_busy,
         judged.started, judged.completed, judged.failed, judged.busy_seconds,
         judged.service / nullif(judged.all_service, 0)::double precision,
         case when not judged.shares then 0
              when judged.grp is null then judged.weight / judged.all_weights
              else judged.group_weight / judged.all_weights * judged.weight / judged.weight_in_group end,
         judged.wait_p50_ms, judged.wait_p95_ms, judged.wait_p99_ms, judged.run_p50_ms, judged.run_p95_ms, judged.run_p99_ms,
         judged.objective_wait_ms, judged.objective_share, judged.objective_reached, judged.objective_reached >= judged.objective_share
  from judged;
end $tenantry$;

comment on function :schema.tenants_v1(text, integer, integer) is
  'The tenants of a queue: what waits and runs, where they stand, what they got in the last full minutes and the current one, and whether they are starved, noisy, and meet their objective.';

-- The names of the queues that have jobs, settings or workers, or were served in the last hour.
create function :schema.queue_names_v1() returns setof text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $tenantry$
begin
  return query
  -- From queue to queue along the indexes of the jobs.
  with recursive available (name) as (
    (select job.queue from :schema.job where job.state = 'available' order by job.queue limit 1)
    union all
    select next.queue from available cross join lateral (
      select job.queue from :schema.job where job.state = 'available' and job.queue > available.name order by job.queue limit 1) as next
  ),
  scheduled (name) as (
    (select job.queue from :schema.job where job.state = 'scheduled' order by job.queue limit 1)
    union all
    select next.queue from scheduled cross join lateral (
      select job.queue from :schema.job where job.state = 'scheduled' and job.queue > scheduled.name order by job.queue limit 1) as next
  ),
  running (name) as (
    (select lease.queue from :schema.lease order by lease.queue limit 1)
    union all
    select next.queue from running cross join lateral (
      select lease.queue from :schema.lease where lease.queue > running.name order by lease.queue limit 1) as next
  ),
  configured (name) as (
    (select tenant.queue from :schema.tenant order by tenant.queue limit 1)
    union all
    select next.queue from configured cross join lateral (
      select tenant.queue from :schema.tenant where tenant.queue > configured.name order by tenant.queue limit 1) as next
  ),
  blocked (name) as (
    (select job.queue from :schema.job where job.state = 'blocked' and job.attempt >= 0 order by job.queue limit 1)
    union all
    select next.queue from blocked cross join lateral (
      select job.queue from :schema.job
      where job.state = 'blocked' and job.attempt >= 0 and job.queue > blocked.name order by job.queue limit 1) as next
  )
  select available.name from available
  union select scheduled.name from scheduled
  union select running.name from running
  union select blocked.name from blocked
  union select queue.name from :schema.queue
  union select configured.name from configured
  union select unnest(worker.queues) from :schema.worker where worker.seen_at > clock_timestamp() - interval '1 minute'
  union select distinct worker_window.queue from :schema.worker_window;
end $tenantry$;

-- Jain's index of each of the last full minutes: 1 when all got what they were entitled to, 1/n when one of n got everything. Only
-- among tenants that had work and might be served throughout, for nobody can get more than it asks for: those whose next job was
-- due before the minute began and waits still. Null while there are fewer than two of them, or when none of them was served.
create function :schema.fairness_v1(_queue text, _minutes integer default 5) returns table (
  window_at timestamptz, tenants bigint, jain double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _settings :schema.queue;
begin
  select queue.* into _settings from :schema.queue where queue.name = _queue;
  return query
  with since as materialized (
    select lane.tenant, min(lane.waiting_at) as waiting_at
    from :schema.waiting_lanes_v1(_queue) as lane
    where lane.waiting_at is not null and lane.state = 'available' and _settings.paused_at is null
    group by lane.tenant
  ),
  standing as materialized (select ring.tenant from :schema.ring where ring.queue = _queue group by ring.tenant having bool_and(ring.parked_until is not null)),
  minute as (
    select start.at from generate_series(
      date_trunc('minute', _now) - _minutes * interval '1 minute', date_trunc('minute', _now) - interval '1 minute', interval '1 minute') as start (at)
  ),
  received as materialized (
    select tenant_window.window_at, tenant_window.tenant,
           case _settings.charge when 'time' then tenant_window.busy_seconds else tenant_window.started end::double precision as service
    from :schema.tenant_window
    where tenant_window.queue = _queue and tenant_window.window_at >= date_trunc('minute', _now) - _minutes * interval '1 minute'
  ),
  backlogged as (
    select minute.at, since.tenant, tenant.grp, coalesce(tenant.weight, 1) as weight, coalesce(tenant_group.weight, 1) as group_weight
    from minute
    join since on since.waiting_at <= minute.at
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = since.tenant
    left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = tenant.grp
    where tenant.paused_at is null and not exists (select from standing where standing.tenant = since.tenant)
  ),
  entitled as (
    select backlogged.at, backlogged.tenant,
           case when backlogged.grp is null then backlogged.weight
                else backlogged.group_weight * backlogged.weight / sum(backlogged.weight) over (partition by backlogged.at, backlogged.grp) end as weight
    from backlogged
  ),
  satisfied as (
    select entitled.at, coalesce(received.service, 0) / entitled.weight as service
    from entitled
    left join received on received.window_at = entitled.at and received.tenant = entitled.tenant
  )
  select minute.at, count(satisfied.service),
         case when count(satisfied.service) > 1
              then power(sum(satisfied.service), 2) / nullif(count(satisfied.service) * sum(power(satisfied.service, 2)), 0) end::double precision
  from minute
  left join satisfied on satisfied.at = minute.at
  group by minute.at
  order by minute.at;
end $tenantry$;

comment on function :schema.fairness_v1(text, integer) is 'Jain''s index of what backlogged tenants received over what they were entitled to, in each of the last full minutes.';

-- One row for each queue, or that of one. The counts are those of tenants_v1, added up.
create function :schema.queues_v1(_queue text default null, _budget integer default 500000, _minutes integer default 5) returns table (
  queue text, strategy text, charge text, paused boolean, workers bigint, slots bigint,
  tenants bigint, waiting_tenants bigint, available bigint, blocked bigint, scheduled bigint, capped boolean, running bigint,
  oldest_seconds double precision, started bigint, completed bigint, failed bigint, busy_seconds double precision,
  wait_p50_ms double precision, wait_p95_ms double precision, wait_p99_ms double precision,
  run_p50_ms double precision, run_p95_ms double precision, run_p99_ms double precision,
  starved bigint, noisy bigint, objectives_met bigint, objectives_missed bigint, jain double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $tenantry$
declare
  _since timestamptz := date_trunc('minute', clock_timestamp()) - _minutes * interval '1 minute';
begin
  return query
  select known.name, coalesce(settings.strategy, 'fair'), coalesce(settings.charge, 'jobs'), settings.paused_at is not null,
         present.workers, present.slots, counted.tenants, counted.waiting_tenants, counted.available, counted.blocked, counted.scheduled,
         counted.capped, counted.running, counted.oldest_seconds, counted.started, counted.completed, counted.failed, counted.busy_seconds,
         timed.wait_p50_ms, timed.wait_p95_ms, timed.wait_p99_ms, timed.run_p50_ms, timed.run_p95_ms, timed.run_p99_ms,
         counted.starved, counted.noisy, counted.met, counted.missed, shared.jain
  from :schema.queue_names_v1() as known (name)
  left join :schema.queue as settings on settings.name = known.name
  cross join lateral (
    select count(*) as workers, coalesce(sum(worker.slots), 0)::bigint as slots from :schema.worker
    where known.name = any (worker.queues) and worker.seen_at > clock_timestamp() - interval '1 minute'
  ) as present
  cross join lateral (
    select count(*) as tenants, count(*) filter (where each.available + each.blocked > 0) as waiting_tenants,
           coalesce(sum(each.available), 0)::bigint as available, coalesce(sum(each.blocked), 0)::bigint as blocked,
           coalesce(sum(each.scheduled), 0)::bigint as scheduled, coalesce(bool_or(each.capped), false) as capped,
           coalesce(sum(each.running), 0)::bigint as running, max(each.oldest_seconds) as oldest_seconds,
           coalesce(sum(each.started), 0)::bigint as started, coalesce(sum(each.completed), 0)::bigint as completed,
           coalesce(sum(each.failed), 0)::bigint as failed, coalesce(sum(each.busy_seconds), 0) as busy_seconds,
           count(*) filter (where each.starved) as starved, count(*) filter (where each.noisy) as noisy,
           count(*) filter (where each.objective_met) as met, count(*) filter (where not each.objective_met) as missed
    from :schema.tenants_v1(known.name, _budget, _minutes) as each
  ) as counted
  cross join lateral (
    select min(ranked.middle_ms) filter (where ranked.measure = 'wait' and ranked.upto >= 0.50 * ranked.of) as wait_p50_ms,
           min(ranked.middle_ms) filter (where ranked.measure = 'wait' and ranked.upto >= 0.95 * ranked.of) as wait_p95_ms,
           min(ranked.middle_ms) filter (where ranked.measure = 'wait' and ranked.upto >= 0.99 * ranked.of) as wait_p99_ms,
           min(ranked.middle_ms) filter (where ranked.measure = 'run' and ranked.upto >= 0.50 * ranked.of) as run_p50_ms,
           min(ranked.middle_ms) filter (where ranked.measure = 'run' and ranked.upto >= 0.95 * ranked.of) as run_p95_ms,
           min(ranked.middle_ms) filter (where ranked.measure = 'run' and ranked.upto >= 0.99 * ranked.of) as run_p99_ms
    from (
      select bucket.measure,
             case bucket.bucket when 0 then 1 else power(2, (bucket.bucket - 0.5) / 4.0::double precision) end as middle_ms,
             sum(sum(bucket.jobs)) over (partition by bucket.measure order by bucket.bucket) as upto,
             sum(sum(bucket.jobs)) over (partition by bucket.measure) as of
      from :schema.worker_window
      cross join lateral (
        select 'wait' as measure, wait.bucket, wait.jobs from unnest(worker_window.wait_buckets, worker_window.wait_jobs) as wait (bucket, jobs)
        union all
        select 'run', run.bucket, run.jobs from unnest(worker_window.run_buckets, worker_window.run_jobs) as run (bucket, jobs)
      ) as bucket
      where worker_window.queue = known.name and worker_window.window_at >= _since
      group by bucket.measure, bucket.bucket
    ) as ranked
  ) as timed
  left join lateral (
    select each.jain from :schema.fairness_v1(known.name, 1) as each
  ) as shared on true
  where _queue is null or known.name = _queue
  order by known.name;
end $tenantry$;

comment on function :schema.queues_v1(text, integer, integer) is 'The queues: what waits and runs in each, its workers, and what it did in the last full minutes and the current one. jain is that of the last full minute.';

create view :schema.tenant_overview as
select known.name as queue, each.tenant, each.grp, each.weight, each.paused, each.parked, each.concurrency, each.rate_per_second,
       coalesce(waiting.available, 0) as available, coalesce(waiting.blocked, 0) as blocked, coalesce(waiting.scheduled, 0) as scheduled,
       coalesce(waiting.running, 0) as running,
       case when waiting.oldest_at is not null then greatest(0, date_part('epoch', clock_timestamp() - waiting.oldest_at)) end as oldest_seconds,
       each.pass, each.pass_lag, each.starved, each.noisy, each.started, each.completed, each.failed, each.busy_seconds,
       each.received_share, each.entitled_share, each.wait_p50_ms, each.wait_p95_ms, each.wait_p99_ms,
       each.run_p50_ms, each.run_p95_ms, each.run_p99_ms,
       each.objective_wait_ms, each.objective_share, each.objective_reached, each.objective_met
from :schema.queue_names_v1() as known (name)
cross join lateral :schema.tenants_v1(known.name) as each
left join (
  select job.queue, job.tenant,
         count(*) filter (where job.state = 'available') as available, count(*) filter (where job.state = 'blocked') as blocked,
         count(*) filter (where job.state = 'scheduled') as scheduled, count(*) filter (where job.state = 'running') as running,
         min(job.run_at) filter (where job.state = 'available' or job.state = 'scheduled' and job.run_at <= clock_timestamp()) as oldest_at
  from :schema.job
  group by job.queue, job.tenant
) as waiting on waiting.queue = known.name and waiting.tenant = each.tenant;

comment on view :schema.tenant_overview is 'The tenants of all queues as tenants_v1 shows them, with every job counted: that reads all jobs.';
