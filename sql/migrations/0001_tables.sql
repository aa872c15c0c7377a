-- breaking: no
-- Tables, constraints and the indexes of the hot path. Why each decision: docs/adr/.
-- The schema name is the only thing that is put into this text.

create type :schema.job_state as enum ('scheduled', 'available', 'running');

create table :schema.job (
  id bigint generated always as identity,
  queue text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  state :schema.job_state not null,
  priority smallint not null,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  run_at timestamptz not null,
  order_at timestamptz not null,
  created_at timestamptz not null,
  claimed_at timestamptz,
  lease_id uuid,
  payload json not null,
  errors jsonb,
  constraint job_pkey primary key (id),
  -- One constraint, not three: PostgreSQL parses each of them anew in every statement that writes, about 30 µs apiece.
  constraint job_state_is_sound check (
    (state = 'running') = (lease_id is not null)
    and attempt between 0 and max_attempts - (state <> 'running')::integer
  )
) with (
  -- The table is small and turns over fast: vacuum it early and at full speed.
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);

-- Serves the fair and the round-robin claim: the first jobs of one lane, and "the next tenant that has any".
create index job_claim on :schema.job (queue, kind, tenant, order_at, id) where state = 'available';
-- Serves the FIFO claim, and nothing else: its statements say `attempt >= 0`, so that the planner can take no other statement
-- for one that this index would serve. With stale statistics it did, and a fair claim read the backlogs of all tenants.
create index job_fifo on :schema.job (queue, kind, order_at, id) where state = 'available' and attempt >= 0;
-- Serves the promotion of scheduled jobs that are due, in their order; its statements say `attempt >= 0`, for the same reason.
create index job_due on :schema.job (queue, kind, run_at, id) where state = 'scheduled' and attempt >= 0;
-- Serves the promotion tenant by tenant, when more is due than one claim promotes.
create index job_due_tenant on :schema.job (queue, kind, tenant, run_at, id) where state = 'scheduled';
-- Serves reading a claim, reclaiming and settling the last job of a lease.
create index job_lease on :schema.job (lease_id) where state = 'running';

comment on table :schema.job is 'Jobs that wait or run. A job leaves this table in the statement that settles it.';
comment on column :schema.job.kind is 'Names the definition, and so the handler.';
comment on column :schema.job.tenant is 'The party between whom capacity is shared.';
comment on column :schema.job.state is 'scheduled: run_at is in the future; available: may be claimed; running: held under a lease.';
comment on column :schema.job.attempt is 'Number of the current or last run, counted when the job is claimed.';
comment on column :schema.job.run_at is 'Not before this time.';
comment on column :schema.job.order_at is 'Order within a tenant: run_at minus one minute for each point of priority.';
comment on column :schema.job.lease_id is 'The claim that holds the job: every settle must name it.';
comment on column :schema.job.payload is 'JSON as it was given: json, not jsonb, so that it round-trips exactly.';
comment on column :schema.job.errors is 'The failures of earlier attempts, oldest first, the newest 20.';

create table :schema.lease (
  id uuid not null,
  queue text collate "C" not null,
  worker_id text not null,
  claimed_at timestamptz not null,
  expires_at timestamptz not null,
  constraint lease_pkey primary key (id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create index lease_expiry on :schema.lease (expires_at);

comment on table :schema.lease is 'One row for each claim that still holds jobs. A heartbeat extends this row and no job row.';

create table :schema.queue (
  name text collate "C" not null,
  strategy text not null default 'fair',
  history text not null default 'keep',
  constraint queue_pkey primary key (name),
  constraint queue_strategy_known check (strategy in ('fair', 'fifo', 'round-robin')),
  constraint queue_history_known check (history in ('keep', 'keep-without-payload', 'none'))
);

comment on table :schema.queue is 'Settings of the queues that differ from the defaults. A queue needs no row.';

create table :schema.tenant (
  queue text collate "C" not null,
  tenant text collate "C" not null,
  weight double precision not null default 1,
  constraint tenant_pkey primary key (queue, tenant),
  constraint tenant_weight_in_range check (weight between 0.001 and 1000)
);

comment on table :schema.tenant is 'Settings of the tenants that differ from the defaults. Enqueue neither needs nor locks a row here.';

-- Derived state. All of it can be lost (it is unlogged) and is found again from the jobs: see claim_fair_v1.
-- Only a claim that holds its queue's advisory lock writes to ring and walk.

create unlogged table :schema.ring (
  queue text collate "C" not null,
  tenant text collate "C" not null,
  kind text collate "C" not null,
  pass double precision not null,
  ready boolean not null,
  head_at timestamptz not null,
  head_id bigint not null,
  constraint ring_pkey primary key (queue, tenant, kind)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Partial, so that a look at one tenant's lanes, which does not say "ready", has the primary key as its only index: on a small or
-- never analysed ring PostgreSQL would find any other index as cheap, and read the whole ring through it for ever after.
create index ring_ready on :schema.ring (queue, kind, pass) where ready;
create index ring_idle on :schema.ring (queue, kind, pass) where not ready;

comment on table :schema.ring is 'The lanes (tenant and kind) of a queue in the order of their tenant''s pass.';
comment on column :schema.ring.pass is 'The tenant''s virtual time: service received divided by weight. A turn charges all ready lanes of its tenant.';
comment on column :schema.ring.ready is 'Whether the lane is believed to have available jobs.';
comment on column :schema.ring.head_at is 'With head_id: where in the order of the lane the next claim starts to look, so that it need not step over the index entries of what is gone.';

create unlogged table :schema.walk (
  queue text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  walk_at timestamptz not null,
  due_tenant text collate "C" not null default '',
  constraint walk_pkey primary key (queue, kind)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.walk is 'How far discovery has walked along the claim index of each kind. No row: no fair claim has asked for the kind yet, or the ring was lost, and the next claim looks for all its lanes.';
comment on column :schema.walk.tenant is 'Where it stopped; the empty string at the start.';
comment on column :schema.walk.walk_at is 'When it goes on.';
comment on column :schema.walk.due_tenant is 'How far the promotion of due jobs has walked from tenant to tenant.';

create unlogged table :schema.signal (
  queue text collate "C" not null,
  kind text collate "C" not null,
  id bigint generated always as identity,
  tenant text collate "C" not null,
  order_at timestamptz not null,
  constraint signal_pkey primary key (queue, kind, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.signal is 'Append-only hints "this lane has work", folded into the ring by the next claim. So enqueue and settle touch no ring row.';

create unlogged table :schema.waiter (
  queue text collate "C" not null,
  worker_id text not null,
  seen_at timestamptz not null,
  constraint waiter_pkey primary key (queue, worker_id)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.waiter is 'Workers with free slots that found nothing and listen. Enqueue notifies only if there is one.';

-- The literal round robin of the first article, kept for comparison.
create unlogged table :schema.tenant_schedule (
  queue text collate "C" not null,
  tenant text collate "C" not null,
  last_served_at timestamptz not null,
  constraint tenant_schedule_pkey primary key (queue, tenant)
);

comment on table :schema.tenant_schedule is 'When the round-robin strategy last served each tenant.';
