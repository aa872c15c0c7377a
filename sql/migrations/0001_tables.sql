-- breaking: no
-- Tables, constraints and the indexes of the hot path. Why each decision: docs/adr/.
-- The schema name is the only thing that is put into this text.

create type :schema.job_state as enum ('scheduled', 'blocked', 'available', 'running');

create table :schema.job (
  id bigint generated always as identity,
  queue text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  key text collate "C",
  state :schema.job_state not null,
  priority smallint not null,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  run_at timestamptz not null,
  order_at timestamptz not null,
  created_at timestamptz not null,
  claimed_at timestamptz,
  charged real,
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
-- Serves the admission of jobs with a key: those that wait for it in their order, and those that have it.
create index job_key on :schema.job (queue, key, state, order_at, id) where key is not null;

-- Serves walking along, and counting, what waits for a key, and nothing else: its statements say `max_attempts > 0`, and those here
-- do not say `attempt >= 0`, so that each is served by one index whatever the statistics say (see job_fifo).
create index job_blocked_lane on :schema.job (queue, kind, tenant, order_at, id) where state = 'blocked' and max_attempts > 0;

comment on table :schema.job is 'Jobs that wait or run. A job leaves this table in the statement that settles it.';
comment on column :schema.job.kind is 'Names the definition, and so the handler.';
comment on column :schema.job.tenant is 'The party between whom capacity is shared.';
comment on column :schema.job.key is 'What the job must not use together with more jobs than the limit of the key allows; null for nothing.';
comment on column :schema.job.state is 'scheduled: run_at is in the future; blocked: due, and its key is used up by others; available: may be claimed; running: held under a lease.';
comment on column :schema.job.charged is 'Seconds that its tenant was charged for it when it was claimed, in a queue that charges time.';
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
-- Leads to all that runs in a queue: limits are counted, never stored.
create index lease_queue on :schema.lease (queue);

-- What runs, found by way of the leases: there are as many as busy slots. An index of the running jobs by tenant would cost every claim
-- of every queue a twelfth more, and the dead entries of all that has run would have to be stepped over until a vacuum.
create view :schema.running_job as
select job.id, lease.queue, job.kind, job.tenant, job.key, job.attempt, job.claimed_at, job.lease_id, lease.worker_id
from :schema.lease
cross join lateral (
  select job.* from :schema.job where job.lease_id = lease.id and job.state = 'running'
  offset 0
) as job;

comment on table :schema.lease is 'One row for each claim that still holds jobs. A heartbeat extends this row and no job row.';

create table :schema.queue (
  name text collate "C" not null,
  strategy text not null default 'fair',
  history text not null default 'keep',
  charge text not null default 'jobs',
  governed boolean not null default false,
  limited boolean not null default false,
  paused_at timestamptz,
  concurrency integer,
  rate_per_second double precision,
  burst integer,
  quota integer,
  tenant_concurrency integer,
  tenant_rate_per_second double precision,
  tenant_burst integer,
  tenant_quota integer,
  key_concurrency integer not null default 1,
  key_rate_per_second double precision,
  key_burst integer,
  objective_wait_ms double precision,
  objective_share double precision,
  constraint queue_pkey primary key (name),
  constraint queue_strategy_known check (strategy in ('fair', 'fifo', 'round-robin')),
  constraint queue_history_known check (history in ('keep', 'keep-without-payload', 'none')),
  constraint queue_charge_known check (charge in ('jobs', 'time')),
  -- What acts on single tenants or kinds needs the ring.
  constraint queue_limits_need_fair check (strategy = 'fair' or num_nonnulls(tenant_concurrency, tenant_rate_per_second) = 0 and charge = 'jobs'),
  constraint queue_concurrency_in_range check (least(concurrency, tenant_concurrency, key_concurrency) >= 0 and greatest(concurrency, tenant_concurrency, key_concurrency) <= 1000000),
  constraint queue_rates_in_range check (least(rate_per_second, tenant_rate_per_second, key_rate_per_second) >= 0.000001 and greatest(rate_per_second, tenant_rate_per_second, key_rate_per_second) <= 1000000),
  constraint queue_bursts_in_range check (least(burst, tenant_burst, key_burst) >= 1 and greatest(burst, tenant_burst, key_burst) <= 1000000),
  constraint queue_rates_have_bursts check (
    (rate_per_second is null) = (burst is null)
    and (tenant_rate_per_second is null) = (tenant_burst is null)
    and (key_rate_per_second is null) = (key_burst is null)
  ),
  constraint queue_quotas_in_range check (least(quota, tenant_quota) >= 0 and greatest(quota, tenant_quota) <= 1000000000),
  constraint queue_objective_is_whole check ((objective_wait_ms is null) = (objective_share is null)),
  constraint queue_objective_in_range check (objective_wait_ms between 1 and 86400000 and objective_share between 0.5 and 0.9999)
);

comment on table :schema.queue is 'Settings of the queues that differ from the defaults. A queue needs no row.';
comment on column :schema.queue.charge is 'What a turn costs its tenant: jobs, or the time for which they run.';
comment on column :schema.queue.governed is 'Whether a claim has more to look at than the ring: settings of single tenants, groups, kinds or keys, limits, or charges of time. Never set back.';
comment on column :schema.queue.limited is 'Whether there ever was a limit on what runs: then settling says which slots it frees. Never set back.';
comment on column :schema.queue.paused_at is 'Since when nothing of the queue starts.';
comment on column :schema.queue.concurrency is 'How many of its jobs may run at once; null for any number.';
comment on column :schema.queue.rate_per_second is 'How many of its jobs may start, in the long run; null for any number.';
comment on column :schema.queue.burst is 'How many may start at once after a rest.';
comment on column :schema.queue.quota is 'How many of its jobs may wait; enqueue refuses more.';
comment on column :schema.queue.tenant_concurrency is 'For each tenant that has none of its own; so are tenant_rate_per_second, tenant_burst and tenant_quota.';
comment on column :schema.queue.key_concurrency is 'For each key that has none of its own; so are key_rate_per_second and key_burst.';
comment on column :schema.queue.objective_wait_ms is 'Within which time of being due the share objective_share of the jobs of each tenant is to start.';

create table :schema.tenant_group (
  queue text collate "C" not null,
  name text collate "C" not null,
  weight double precision not null default 1,
  objective_wait_ms double precision,
  objective_share double precision,
  constraint tenant_group_pkey primary key (queue, name),
  constraint tenant_group_weight_in_range check (weight between 0.001 and 1000),
  constraint tenant_group_objective_is_whole check ((objective_wait_ms is null) = (objective_share is null)),
  constraint tenant_group_objective_in_range check (objective_wait_ms between 1 and 86400000 and objective_share between 0.5 and 0.9999)
);

comment on table :schema.tenant_group is 'Settings of the groups that differ from the defaults. A group exists as soon as a tenant names it.';

create table :schema.tenant (
  queue text collate "C" not null,
  tenant text collate "C" not null,
  weight double precision not null default 1,
  grp text collate "C",
  paused_at timestamptz,
  concurrency integer,
  rate_per_second double precision,
  burst integer,
  quota integer,
  objective_wait_ms double precision,
  objective_share double precision,
  constraint tenant_pkey primary key (queue, tenant),
  constraint tenant_weight_in_range check (weight between 0.001 and 1000),
  constraint tenant_group_is_named check (octet_length(grp) between 1 and 255),
  constraint tenant_concurrency_in_range check (concurrency between 0 and 1000000),
  constraint tenant_rate_in_range check (rate_per_second between 0.000001 and 1000000),
  constraint tenant_burst_in_range check (burst between 1 and 1000000),
  constraint tenant_rate_has_burst check ((rate_per_second is null) = (burst is null)),
  constraint tenant_quota_in_range check (quota between 0 and 1000000000),
  constraint tenant_objective_is_whole check ((objective_wait_ms is null) = (objective_share is null)),
  constraint tenant_objective_in_range check (objective_wait_ms between 1 and 86400000 and objective_share between 0.5 and 0.9999)
);

-- Serves the question whether any tenant has limits of its own.
create index tenant_bound on :schema.tenant (queue) where paused_at is not null or concurrency is not null or rate_per_second is not null;

-- A table lookup for each enqueue into a queue with settings must not become one for each of its tenants.
create index tenant_with_quota on :schema.tenant (queue) where quota is not null;

comment on table :schema.tenant is 'Settings of the tenants that differ from the defaults. Enqueue neither needs nor locks a row here.';
comment on column :schema.tenant.grp is 'The group whose share the tenant has a part of; null for a share of its own.';

create table :schema.kind (
  queue text collate "C" not null,
  kind text collate "C" not null,
  paused_at timestamptz,
  concurrency integer,
  rate_per_second double precision,
  burst integer,
  constraint kind_pkey primary key (queue, kind),
  constraint kind_concurrency_in_range check (concurrency between 0 and 1000000),
  constraint kind_rate_in_range check (rate_per_second between 0.000001 and 1000000),
  constraint kind_burst_in_range check (burst between 1 and 1000000),
  constraint kind_rate_has_burst check ((rate_per_second is null) = (burst is null))
);

comment on table :schema.kind is 'Limits and pauses of the kinds of a queue. A kind needs no row.';

create table :schema.key (
  queue text collate "C" not null,
  key text collate "C" not null,
  concurrency integer,
  rate_per_second double precision,
  burst integer,
  constraint key_pkey primary key (queue, key),
  constraint key_concurrency_in_range check (concurrency between 0 and 1000000),
  constraint key_rate_in_range check (rate_per_second between 0.000001 and 1000000),
  constraint key_burst_in_range check (burst between 1 and 1000000),
  constraint key_rate_has_burst check ((rate_per_second is null) = (burst is null))
);

-- Serves the question whether any key has a rate of its own.
create index key_rated on :schema.key (queue) where rate_per_second is not null;

comment on table :schema.key is 'Limits of single keys. A key needs no row: then the queue''s key_concurrency holds.';

create table :schema.bucket (
  queue text collate "C" not null,
  scope text not null,
  name text collate "C" not null,
  full_at timestamptz not null,
  constraint bucket_pkey primary key (queue, scope, name),
  constraint bucket_scope_known check (scope in ('queue', 'tenant', 'kind', 'key'))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.bucket is 'The token buckets of rate limits. A bucket that is full needs no row. Only a claim that holds the queue''s lock writes here.';
comment on column :schema.bucket.full_at is 'When the bucket is full again: it lacks (full_at - now) times the rate now. So a change of rate or burst acts at once.';

-- Derived state. All of it can be lost (it is unlogged) and is found again from the jobs: see claim_fair_v1.
-- Only a claim that holds its queue's advisory lock writes to ring, group_ring and walk.

create unlogged table :schema.ring (
  queue text collate "C" not null,
  tenant text collate "C" not null,
  kind text collate "C" not null,
  grp text collate "C" not null default '',
  pass double precision not null,
  ready boolean not null,
  parked_at timestamptz,
  parked_until timestamptz,
  entered_at timestamptz not null default clock_timestamp(),
  served_at timestamptz,
  seconds real,
  head_at timestamptz not null,
  head_id bigint not null,
  constraint ring_pkey primary key (queue, tenant, kind)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Partial, so that a look at one tenant's lanes, which does not say "ready", has the primary key as its only index: on a small or
-- never analysed ring PostgreSQL would find any other index as cheap, and read the whole ring through it for ever after.
-- The tenant's name decides between equal passes, so that the order is the same everywhere, in the simulator too.
create index ring_ready on :schema.ring (queue, grp, kind, pass, tenant) where ready;
create index ring_idle on :schema.ring (queue, grp, kind, pass) where not ready and parked_until is null;
create index ring_parked on :schema.ring (queue, kind, parked_until) where parked_until < 'infinity';
create index ring_parked_for_good on :schema.ring (queue, kind, parked_at) where parked_until = 'infinity';

comment on table :schema.ring is 'The lanes (tenant and kind) of a queue in the order of their tenant''s pass.';
comment on column :schema.ring.grp is 'The group among whose tenants the pass counts; the empty string for tenants without one.';
comment on column :schema.ring.pass is 'The tenant''s virtual time: service received divided by weight. A turn charges all ready lanes of its tenant.';
comment on column :schema.ring.ready is 'Whether the lane is believed to have available jobs that may be claimed. Never together with parked_until.';
comment on column :schema.ring.parked_at is 'Since when the lane is parked: it may have jobs, and its tenant is paused or at a limit.';
comment on column :schema.ring.parked_until is 'When its tenant has a token again; infinity when it waits for a slot or to be resumed, which a notice tells.';
comment on column :schema.ring.entered_at is 'When the lane last became ready.';
comment on column :schema.ring.served_at is 'When a claim last charged the lane: it served its tenant.';
comment on column :schema.ring.seconds is 'How long a job of the lane is expected to run, learned from those that have.';
comment on column :schema.ring.head_at is 'With head_id: where in the order of the lane the next claim starts to look, so that it need not step over the index entries of what is gone.';

create unlogged table :schema.group_ring (
  queue text collate "C" not null,
  grp text collate "C" not null,
  kind text collate "C" not null,
  pass double precision not null,
  ready boolean not null,
  constraint group_ring_pkey primary key (queue, grp, kind)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create index group_ring_ready on :schema.group_ring (queue, kind, pass, grp) where ready;

comment on table :schema.group_ring is 'The groups of a queue, kind by kind, in the order of their pass: they share first, as tenants without a group do, and their tenants share what they get.';
comment on column :schema.group_ring.ready is 'Whether the group has a ready lane of this kind.';

create unlogged table :schema.walk (
  queue text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  walk_at timestamptz not null,
  due_tenant text collate "C" not null default '',
  rest_until timestamptz not null default '-infinity',
  seconds real,
  constraint walk_pkey primary key (queue, kind)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.walk is 'How far discovery has walked along the claim index of each kind. No row: no fair claim has asked for the kind yet, or the ring was lost, and the next claim looks for all its lanes.';
comment on column :schema.walk.kind is 'The empty string for the walk along the keys.';
comment on column :schema.walk.tenant is 'Where it stopped (at a key, in the walk along the keys); the empty string at the start.';
comment on column :schema.walk.walk_at is 'When it goes on.';
comment on column :schema.walk.rest_until is 'Until when a claim that was not filled does not walk all the way round again: the last one was long and found nothing.';
comment on column :schema.walk.seconds is 'How long a job of the kind is expected to run, for tenants of which nothing is known.';
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

create unlogged table :schema.notice (
  queue text collate "C" not null,
  kind text collate "C" not null,
  id bigint generated always as identity,
  tenant text collate "C",
  key text collate "C",
  jobs integer,
  seconds double precision,
  surplus double precision,
  constraint notice_pkey primary key (queue, kind, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.notice is 'Append-only, like signal: what else the next claim must know. A slot became free, a key has work, a run took longer than was charged, a setting changed.';
comment on column :schema.notice.kind is 'Which claims fold it in: those of the kind; for the empty string, all.';
comment on column :schema.notice.tenant is 'Whose parked lanes to look at again, or whose run was measured; null for none. The empty string for all tenants; with a kind: that the kind is no longer paused.';
comment on column :schema.notice.key is 'For which key to look at the jobs that wait; null for none.';
comment on column :schema.notice.jobs is 'How many jobs of the lane ran; null when the notice measures nothing.';
comment on column :schema.notice.seconds is 'How long they ran in all.';
comment on column :schema.notice.surplus is 'By how much that is more than was charged for them; negative when it is less.';

-- A job that is no longer running, as far as the next claim must know of it.
create type :schema.ended_job as (queue text, tenant text, kind text, key text, claimed_at timestamptz, charged real);

create unlogged table :schema.key_timer (
  queue text collate "C" not null,
  key text collate "C" not null,
  due_at timestamptz not null,
  constraint key_timer_pkey primary key (queue, key)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

create index key_timer_due on :schema.key_timer (queue, due_at);

comment on table :schema.key_timer is 'When keys with a rate have a token again. Only claims write here.';

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
