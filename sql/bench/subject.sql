-- What `bench claim` does to a schema of Tenantry around the measurement. The measured statements are the library's own.

-- name: subject_finished
-- Finished jobs $1 to $2 of 1,000 tenants, finished today.
insert into :schema.job_history (id, queue, kind, tenant, state, priority, attempt, max_attempts, run_at, created_at, claimed_at,
  finalized_at, payload, retention)
select number, 'default', 'noop', 'tenant-' || number % 1000, 'completed', 0, 1, 5, now(), now(), now(), now(),
  json_build_object('number', number, 'filler', repeat('x', 100)), 'settled'
from generate_series($1::integer, $2::integer) as number;

-- name: subject_idle_tenants
-- Idle tenants $1 to $2: each has settings of its own, and a lane from when it last had work.
with given as (
  select 'idle-' || number as tenant, random() * 1000 as pass from generate_series($1::integer, $2::integer) as number
),
configured as (
  insert into :schema.tenant (queue, tenant, weight) select 'default', given.tenant, 1 from given
)
insert into :schema.ring (queue, tenant, kind, pass, ready) select 'default', given.tenant, 'noop', given.pass, false from given;

-- name: subject_count
select count(*) filter (where state = 'available') as waiting, count(*) filter (where state = 'running') as running
from :schema.job;

-- name: subject_empty
truncate :schema.job, :schema.job_history, :schema.lease, :schema.ring, :schema.ring_state, :schema.walk, :schema.signal,
  :schema.waiter, :schema.tenant_schedule;

-- name: subject_vacuum
vacuum (analyze) :schema.job, :schema.lease, :schema.ring, :schema.ring_state, :schema.walk, :schema.signal,
  :schema.tenant_schedule;

-- name: subject_vacuum_all
vacuum (analyze) :schema.job_history, :schema.tenant;
