-- What `bench claim` does to a schema of Tenantry around the measurement. The measured statements are the library's own.

-- name: subject_finished
-- Finished jobs $1 to $2 of 1,000 tenants, finished today.
insert into :schema.job_history (id, queue, kind, tenant, state, priority, attempt, max_attempts, run_at, created_at, claimed_at,
  finalized_at, payload, retention)
select number, 'default', 'noop', 'tenant-' || number % 1000, 'completed', 0, 1, 5, now(), now(), now(), now(),
  json_build_object('number', number, 'filler', repeat('x', 100)), 'settled'
from generate_series($1::integer, $2::integer) as number;

-- name: subject_idle_tenants
-- Idle tenants $1 to $2: each has settings of its own, and a lane like the one of a tenant that has had work.
with given as (
  select 'idle-' || number as tenant, random() * 1000 as pass from generate_series($1::integer, $2::integer) as number
),
configured as (
  insert into :schema.tenant (queue, tenant, weight) select 'default', given.tenant, 1 from given
)
insert into :schema.ring
select lane.*
from (select ring from :schema.ring where not ring.ready and ring.tenant not like 'idle-%' limit 1) as served
cross join given
cross join lateral jsonb_populate_record(served.ring, jsonb_build_object('tenant', given.tenant, 'pass', given.pass)) as lane;

-- name: subject_idle_lanes
select count(*)::text as lanes from :schema.ring where not ring.ready;

-- name: subject_parked_tenants
-- $1 tenants that may run one job at a time.
insert into :schema.tenant (queue, tenant, concurrency)
select 'default', 'parked-' || number, 1 from generate_series(0, $1::integer - 1) as number;

-- name: subject_parked_left
-- How many of $1 tenants are not parked yet, and how many signals have not been folded in.
select ($1::integer - (select count(*) from :schema.ring where parked_until is not null)
        + (select count(*) from :schema.signal))::text as "left";

-- name: subject_count
-- Without those of tenants at their limit, which neither start nor end.
select count(*) filter (where state in ('available', 'blocked')) as waiting, count(*) filter (where state = 'running') as running
from :schema.job
where tenant not like 'parked-%';

-- name: subject_empty
-- Empties all but the settings.
do $$
begin
  execute (
    select 'truncate ' || string_agg(class.oid::regclass::text, ', ')
    from pg_class as class
    where class.relnamespace = to_regnamespace(quote_ident(:schema_literal)) and class.relkind in ('r', 'p') and not class.relispartition
      and class.relname not in ('migration', 'queue', 'tenant', 'tenant_group', 'kind', 'key')
  );
end $$;

-- name: subject_tables
-- The tables that a claim or a settlement reads or writes, quoted. The others do not change while it is measured, or only grow.
select class.oid::regclass::text as name
from pg_class as class
where class.relnamespace = to_regnamespace(quote_ident(:schema_literal)) and class.relkind = 'r' and not class.relispartition
  and class.relname not in ('migration', 'queue', 'tenant', 'tenant_group', 'kind', 'key')
order by class.relname;

-- name: subject_vacuum_settings
vacuum (analyze) :schema.job_history, :schema.tenant, :schema.queue;
