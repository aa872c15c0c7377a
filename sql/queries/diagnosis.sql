-- name: why_job
-- $1 id of a job. One row: the rule that binds and its facts.
select rule, detail::text as detail from :schema.why_job_v1($1::bigint);

-- name: why_tenant
-- $1 queue  $2 tenant  $3 kind or null. One row: the rule that binds the next job of the tenant, and its facts.
select rule, detail::text as detail from :schema.why_tenant_v1($1::text, $2::text, $3::text);

-- name: doctor_patience
-- A session that examines waits for nobody for long.
select pg_catalog.set_config('lock_timeout', '1s', false), pg_catalog.set_config('statement_timeout', '30s', false);

-- name: doctor_starvation
-- Lanes that were passed over: ready all the time since before another lane of the same kind and group had its last turn, which began
-- at a larger pass. A turn is 63 jobs at most (an eighth of the largest claim, rounded up), so the other lane's turn began no lower
-- than 63 / weight below where its tenant stands now; its tenant stands at the smallest pass of its lanes, since a claim of several
-- kinds goes by that one. Where time is charged, passes are corrected later, so that nothing can be said of single turns; nor of kinds
-- with limits or pauses, whose lanes stand still at times while their tenants are served in other kinds.
with lane as (
  select ring.queue, ring.grp, ring.kind, ring.tenant, ring.pass, ring.ready and ring.parked_until is null as ready,
         ring.entered_at, ring.served_at, min(ring.pass) over (partition by ring.queue, ring.tenant) as stands_at
  from :schema.ring
  where not exists (
    select from :schema.queue where queue.name = ring.queue and (queue.strategy <> 'fair' or queue.charge = 'time')
  )
  and not exists (select from :schema.kind where kind.queue = ring.queue and kind.kind = ring.kind)
),
served as (
  select lane.queue, lane.grp, lane.kind, lane.tenant, lane.served_at,
         lane.stands_at - 63 / coalesce(tenant.weight, 1) - 0.000001 as began_at
  from lane
  left join :schema.tenant on tenant.queue = lane.queue and tenant.tenant = lane.tenant
  -- One that came back since its last turn stands where it entered.
  where lane.served_at > lane.entered_at
),
ordered as (
  select mark.*, min(mark.ready_since) over (
           partition by mark.queue, mark.grp, mark.kind order by mark.at, mark.place rows between unbounded preceding and current row
         ) as ready_since_below
  from (
    select lane.queue, lane.grp, lane.kind, lane.tenant, lane.pass as at, 1 as place, lane.entered_at as ready_since, null::timestamptz as served_at
    from lane where lane.ready
    union all
    select served.queue, served.grp, served.kind, served.tenant, served.began_at, 0, null, served.served_at
    from served
  ) as mark
),
passed_over as (
  select ordered.queue, ordered.grp, ordered.kind, ordered.tenant as favoured, ordered.at as began_at, ordered.served_at
  from ordered
  where ordered.served_at > ordered.ready_since_below
  limit 20
)
select passed_over.queue, passed_over.kind, passed_over.favoured, starved.tenant, starved.pass, passed_over.began_at,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - starved.entered_at) * 1000) as ready_ms
from passed_over
cross join lateral (
  select lane.tenant, lane.pass, lane.entered_at from lane
  where lane.queue = passed_over.queue and lane.grp = passed_over.grp and lane.kind = passed_over.kind and lane.ready
    and lane.pass < passed_over.began_at and lane.entered_at < passed_over.served_at
  order by lane.pass, lane.tenant
  limit 1
) as starved;

-- name: doctor_parked
-- Lanes that are parked although nothing binds their tenant, no notice about it waits, and workers claim the kind. A claim that
-- unparks takes a moment, and the heal goes lane by lane, so not those of the last minute.
select parked.queue, parked.kind, parked.tenant,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - parked.parked_at) * 1000) as parked_ms
from (
  select ring.queue, ring.kind, ring.tenant, ring.parked_at from :schema.ring
  where ring.parked_until is not null and ring.parked_at < pg_catalog.clock_timestamp() - interval '1 minute'
    and (ring.parked_until = 'infinity' or ring.parked_until < pg_catalog.clock_timestamp() - interval '1 minute')
  limit 10000
) as parked
left join :schema.queue on queue.name = parked.queue
left join :schema.tenant on tenant.queue = parked.queue and tenant.tenant = parked.tenant
left join :schema.bucket on bucket.queue = parked.queue and bucket.scope = 'tenant' and bucket.name = parked.tenant
where queue.paused_at is null and tenant.paused_at is null
  and (
    coalesce(tenant.concurrency, queue.tenant_concurrency) is null
    or coalesce(tenant.concurrency, queue.tenant_concurrency) > (
      select count(*) from (
        select from :schema.running_job as job
        where job.queue = parked.queue and job.tenant = parked.tenant
        limit coalesce(tenant.concurrency, queue.tenant_concurrency)
      ) as counted)
  )
  and (
    coalesce(tenant.rate_per_second, queue.tenant_rate_per_second) is null or bucket.full_at is null
    or pg_catalog.date_part('epoch', bucket.full_at - pg_catalog.clock_timestamp()) * coalesce(tenant.rate_per_second, queue.tenant_rate_per_second)
       <= (case when tenant.rate_per_second is null then queue.tenant_burst else tenant.burst end) - 1
  )
  and not exists (
    select from :schema.notice
    where notice.queue = parked.queue and notice.kind = '' and notice.tenant in (parked.tenant, '')
  )
  and exists (
    select from :schema.worker
    where parked.queue = any (worker.queues) and parked.kind = any (worker.kinds)
      and worker.seen_at > pg_catalog.clock_timestamp() - interval '30 seconds'
  )
limit 20;

-- name: doctor_leases
-- Running jobs without a lease row, which nobody would ever reclaim.
select job.queue, job.kind, job.tenant, job.id::text as job,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - job.claimed_at) * 1000) as running_ms
from :schema.job
where job.state = 'running' and not exists (select from :schema.lease where lease.id = job.lease_id)
limit 20;

-- name: doctor_reclaim
-- Leases that ran out and that nobody reclaims: any worker would, within seconds.
select lease.queue, lease.worker_id as worker,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - lease.expires_at) * 1000) as expired_ms
from :schema.lease
where lease.expires_at < pg_catalog.clock_timestamp() - interval '30 seconds' and lease.expires_at > '-infinity'
order by lease.expires_at
limit 20;

-- name: doctor_limits
-- What runs, counted anew, against the limits.
with running as (
  select job.queue, job.tenant, job.kind, job.key from :schema.job where job.state = 'running'
)
select used.queue, used.scope, used.name, used.running, used.allowed
from (
  select running.queue, 'queue' as scope, running.queue as name, count(*) as running, max(queue.concurrency) as allowed
  from running
  join :schema.queue on queue.name = running.queue
  group by running.queue
  union all
  select running.queue, 'kind', running.kind, count(*), max(kind.concurrency)
  from running
  join :schema.kind on kind.queue = running.queue and kind.kind = running.kind
  group by running.queue, running.kind
  union all
  select running.queue, 'tenant', running.tenant, count(*), max(coalesce(tenant.concurrency, queue.tenant_concurrency))
  from running
  left join :schema.queue on queue.name = running.queue
  left join :schema.tenant on tenant.queue = running.queue and tenant.tenant = running.tenant
  group by running.queue, running.tenant
  union all
  select running.queue, 'key', running.key, count(*), max(coalesce(key.concurrency, queue.key_concurrency, 1))
  from running
  left join :schema.queue on queue.name = running.queue
  left join :schema.key on key.queue = running.queue and key.key = running.key
  where running.key is not null
  group by running.queue, running.key
) as used
where used.running > used.allowed
limit 20;

-- name: doctor_keys
-- Jobs that are blocked although their key is free, nobody has told a claim about it, and workers claim their kind. Looks at 10,000
-- blocked jobs, and not at those that are due for less than a minute: the walk along the keys may be under way.
select head.queue, head.key, head.id::text as job,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - head.run_at) * 1000) as waiting_ms
from (
  select distinct seen.queue, seen.key
  from (select job.queue, job.key from :schema.job where job.state = 'blocked' and job.attempt >= 0 limit 10000) as seen
) as blocked
left join :schema.queue on queue.name = blocked.queue
left join :schema.key on key.queue = blocked.queue and key.key = blocked.key
left join :schema.bucket on bucket.queue = blocked.queue and bucket.scope = 'key' and bucket.name = blocked.key
cross join lateral (
  select job.queue, job.key, job.kind, job.id, job.run_at, job.order_at from :schema.job
  where job.queue = blocked.queue and job.key = blocked.key and job.state = 'blocked'
  order by job.order_at, job.id
  limit 1
) as head
cross join lateral (
  select count(*) as held, count(*) filter (where holder.state = 'available') as available
  from (
    select job.state from :schema.job
    where job.queue = blocked.queue and job.key = blocked.key and job.state in ('running', 'available')
    limit coalesce(key.concurrency, queue.key_concurrency, 1)
  ) as holder
) as usage
where head.run_at < pg_catalog.clock_timestamp() - interval '1 minute' and queue.paused_at is null
  and usage.held < coalesce(key.concurrency, queue.key_concurrency, 1)
  and not (coalesce(key.concurrency, queue.key_concurrency, 1) = 1 and exists (
    select from :schema.job
    where job.queue = blocked.queue and job.key = blocked.key and job.state = 'scheduled' and job.claimed_at is not null
      and (job.order_at, job.id) < (head.order_at, head.id)
  ))
  and (
    coalesce(key.rate_per_second, queue.key_rate_per_second) is null or bucket.full_at is null
    or pg_catalog.date_part('epoch', bucket.full_at - pg_catalog.clock_timestamp()) * coalesce(key.rate_per_second, queue.key_rate_per_second)
       <= (case when key.rate_per_second is null then queue.key_burst else key.burst end) - usage.available - 1
  )
  and not exists (select from :schema.notice where notice.queue = blocked.queue and notice.kind = '' and notice.key = blocked.key)
  and exists (
    select from :schema.worker
    where blocked.queue = any (worker.queues) and head.kind = any (worker.kinds)
      and worker.seen_at > pg_catalog.clock_timestamp() - interval '30 seconds'
  )
limit 20;

-- name: doctor_signals
-- Signals and notices that nobody folds into the ring: more than claims can have left, or any where no worker claims.
select behind.queue, behind.kind, behind.sort, behind.signals
from (
  select seen.queue, seen.kind, 'signal' as sort, count(*) as signals
  from (select signal.queue, signal.kind from :schema.signal limit 100000) as seen
  group by seen.queue, seen.kind
  union all
  select seen.queue, seen.kind, 'notice', count(*)
  from (select notice.queue, notice.kind from :schema.notice limit 100000) as seen
  group by seen.queue, seen.kind
) as behind
where behind.signals > 10000 or not exists (
  select from :schema.worker
  where behind.queue = any (worker.queues) and (behind.kind = '' or behind.kind = any (worker.kinds))
    and worker.seen_at > pg_catalog.clock_timestamp() - interval '30 seconds'
)
order by behind.signals desc
limit 20;

-- name: doctor_workers
-- Kinds with jobs that are due, and no worker that knows them.
with recursive available as (
  (select job.queue, job.kind from :schema.job where job.state = 'available' order by job.queue, job.kind limit 1)
  union all
  select next.queue, next.kind
  from available
  cross join lateral (
    select job.queue, job.kind from :schema.job
    where job.state = 'available' and (job.queue, job.kind) > (available.queue, available.kind)
    order by job.queue, job.kind
    limit 1
  ) as next
),
scheduled as (
  (select job.queue, job.kind from :schema.job where job.state = 'scheduled' and job.attempt >= 0 order by job.queue, job.kind limit 1)
  union all
  select next.queue, next.kind
  from scheduled
  cross join lateral (
    select job.queue, job.kind from :schema.job
    where job.state = 'scheduled' and job.attempt >= 0 and (job.queue, job.kind) > (scheduled.queue, scheduled.kind)
    order by job.queue, job.kind
    limit 1
  ) as next
),
waiting as (
  select head.queue, head.kind from (select available.queue, available.kind from available limit 1000) as head
  union
  select head.queue, head.kind from (select scheduled.queue, scheduled.kind from scheduled limit 1000) as head
  where exists (
    select from :schema.job
    where job.queue = head.queue and job.kind = head.kind and job.state = 'scheduled' and job.attempt >= 0
      and job.run_at <= pg_catalog.clock_timestamp()
  )
  union
  select blocked.queue, blocked.kind
  from (select job.queue, job.kind from :schema.job where job.state = 'blocked' and job.attempt >= 0 limit 10000) as blocked
)
select waiting.queue, waiting.kind,
       (select count(*) from (
          select from :schema.job where job.queue = waiting.queue and job.kind = waiting.kind and job.state = 'available' limit 1000
        ) as counted) as available
from waiting
where not exists (
  select from :schema.worker
  where waiting.queue = any (worker.queues) and waiting.kind = any (worker.kinds)
    and worker.seen_at > pg_catalog.clock_timestamp() - interval '30 seconds'
)
order by waiting.queue, waiting.kind
limit 20;

-- name: doctor_horizon
-- What keeps vacuum from removing dead rows: transactions and prepared ones of more than $1 milliseconds, and replication slots.
select 'transaction' as sort, activity.pid, activity.usename as owner, activity.application_name as name, activity.state,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - activity.xact_start) * 1000) as open_ms
from pg_catalog.pg_stat_activity as activity
where activity.backend_xmin is not null and activity.xact_start < pg_catalog.clock_timestamp() - $1::double precision * interval '1 millisecond'
  and activity.backend_type not in ('autovacuum worker')
union all
select 'prepared transaction', null, prepared.owner, prepared.gid, null,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - prepared.prepared) * 1000)
from pg_catalog.pg_prepared_xacts as prepared
where prepared.prepared < pg_catalog.clock_timestamp() - $1::double precision * interval '1 millisecond'
union all
select 'replication slot', null, null, slot.slot_name, case when slot.active then 'active' else 'inactive' end, null
from pg_catalog.pg_replication_slots as slot
where pg_catalog.age(slot.xmin) > 10000000
order by open_ms desc nulls first
limit 20;

-- name: doctor_locks
-- The turn of a queue held for longer than any claim holds it, and tables locked against claims.
select 'queue' as sort, known.name, held.session ->> 'pid' as pid, held.session ->> 'application' as application, held.session ->> 'state' as state,
       (held.session ->> 'query_ms')::double precision as held_ms
from (
  select queue.name from :schema.queue union select walk.queue from :schema.walk
) as known
cross join lateral (select :schema.why_queue_lock_v1(known.name) as session) as held
where held.session is not null
union all
select 'table', locked.found ->> 'table', locked.found #>> '{holders,0,pid}', locked.found #>> '{holders,0,application}',
       locked.found #>> '{holders,0,state}', (locked.found #>> '{holders,0,transaction_ms}')::double precision
from (select :schema.why_table_lock_v1() as found) as locked
where locked.found is not null
limit 20;

-- name: doctor_vacuum
-- Tables that are not vacuumed, and dead rows that pile up.
select class.relname as name,
       case when pg_catalog.current_setting('autovacuum') <> 'on' or pg_catalog.current_setting('track_counts') <> 'on' then 'off for the server'
            when 'autovacuum_enabled=false' = any (class.reloptions) then 'off for the table'
            else 'behind' end as vacuum,
       coalesce(pg_catalog.pg_stat_get_dead_tuples(class.oid), 0) as dead, coalesce(pg_catalog.pg_stat_get_live_tuples(class.oid), 0) as live
from pg_catalog.pg_class as class
join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
where namespace.nspname = :schema_literal and class.relkind = 'r'
  and (
    pg_catalog.current_setting('autovacuum') <> 'on' or pg_catalog.current_setting('track_counts') <> 'on'
    or 'autovacuum_enabled=false' = any (class.reloptions)
    or pg_catalog.pg_stat_get_dead_tuples(class.oid) > 100000
       and pg_catalog.pg_stat_get_dead_tuples(class.oid) > pg_catalog.pg_stat_get_live_tuples(class.oid)
  )
order by dead desc, name
limit 20;

-- name: doctor_history
-- Partitions of the history that are missing for today and the next two days.
select 'job_history_' || wanted.class || '_' || pg_catalog.to_char(wanted.day, 'YYYYMMDD') as name
from (
  select class.class, (pg_catalog.now() at time zone 'UTC')::date + ahead.days as day
  from (values ('settled'), ('discarded')) as class (class)
  cross join (values (0), (1), (2)) as ahead (days)
) as wanted
where not exists (
  select from pg_catalog.pg_class as class
  join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
  join pg_catalog.pg_inherits as inherits on inherits.inhrelid = class.oid
  where namespace.nspname = :schema_literal
    and class.relname = 'job_history_' || wanted.class || '_' || pg_catalog.to_char(wanted.day, 'YYYYMMDD')
)
order by name;

-- name: doctor_objectives
-- Tenants whose service objective was missed over the last minutes.
select observed.queue, found.tenant, found.objective_wait_ms, found.objective_share, found.objective_reached
from (
  select queue.name as queue from :schema.queue where queue.objective_wait_ms is not null
  union select tenant.queue from :schema.tenant where tenant.objective_wait_ms is not null
  union select tenant_group.queue from :schema.tenant_group where tenant_group.objective_wait_ms is not null
) as observed
cross join lateral :schema.tenants_v1(observed.queue, 100000) as found
where not found.objective_met
order by found.objective_reached
limit 20;
