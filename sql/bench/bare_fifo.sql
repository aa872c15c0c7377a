-- The control of `bench claim`: a task table as the article on SKIP LOCKED writes it, with its two partial indexes, and its
-- three statements: claim and mark in one, work outside any transaction, settle under a condition. FROZEN: figures of
-- different versions can only be compared while this stays as it is. Three things are not the article's: a column for the
-- tenant, which a multi-tenant application needs; the storage parameters, which are those of our own table; and the settling
-- statement, which deletes many rows at once, as ours does with history off, and asks for the owner as well as the status.

-- name: bare_create
create schema :schema;
create table :schema.job_queue (
  id bigserial primary key,
  tenant_id text not null,
  kind text not null,
  payload jsonb not null default '{}'::jsonb,
  status text not null default 'pending',
  attempts int not null default 0,
  run_after timestamptz not null default now(),
  locked_by text,
  locked_at timestamptz,
  created_at timestamptz not null default now(),
  constraint job_queue_status_chk check (status in ('pending', 'processing', 'done', 'failed'))
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
create index idx_job_queue_pending on :schema.job_queue (run_after, id) where status = 'pending';
create index idx_job_queue_processing on :schema.job_queue (locked_at) where status = 'processing';

-- name: bare_enqueue
-- Jobs $1 to $2, those of $3 tenants in turns.
insert into :schema.job_queue (tenant_id, kind, payload)
select 'tenant-' || number % $3::integer, 'noop', jsonb_build_object('number', number, 'filler', repeat('x', 100))
from generate_series($1::integer, $2::integer) as number;

-- name: bare_finished
-- Finished jobs $1 to $2 of 1,000 tenants, which stay in the table, as the article leaves them.
insert into :schema.job_queue (tenant_id, kind, payload, status, attempts, locked_by, locked_at)
select 'tenant-' || number % 1000, 'noop', jsonb_build_object('number', number, 'filler', repeat('x', 100)), 'done', 1, null, null
from generate_series($1::integer, $2::integer) as number;

-- name: bare_claim
-- $1 worker. `:batch` is written into the text, as the article's limit is: with a parameter in its place PostgreSQL would
-- make a new plan for every claim, which costs 0.2 ms.
with picked as (
  select id
  from :schema.job_queue
  where status = 'pending' and run_after <= now()
  order by run_after, id
  limit :batch
  for update skip locked
)
update :schema.job_queue j
set status = 'processing', attempts = j.attempts + 1, locked_by = $1, locked_at = now()
from picked
where j.id = picked.id
returning j.id, j.tenant_id, j.kind, j.payload, j.attempts;

-- name: bare_complete
-- $1 ids  $2 worker
delete from :schema.job_queue
where id = any ($1::bigint[]) and status = 'processing' and locked_by = $2
returning id;

-- name: bare_count
select count(*) filter (where status = 'pending') as waiting, count(*) filter (where status = 'processing') as running
from :schema.job_queue;

-- name: bare_empty
truncate :schema.job_queue;
