-- breaking: no
-- Numbers: who works, and what each tenant got in each minute. All of it is derived and may be lost (unlogged); readers get it
-- from the views and functions of 0021_tenants.sql.
--
-- Problem.  Per tenant and minute: starts, ends, busy seconds and the distribution of the waits, from many processes, for thousands
--           of tenants, at a few per cent of what claiming and settling costs.
-- Naive.    A row for each tenant and minute that every worker adds to: a write for nearly every job when tenants are many, workers
--           that wait for each other's rows, and a reply that is lost makes the next try count twice.
-- Here.     A worker adds up in memory and writes, every few seconds, what it has counted so far in the current minute: one row for
--           all its tenants, in arrays, which replaces the row that it wrote before. Nobody else writes that row: so there is
--           nothing to wait for and nothing to deadlock with, and a flush that fails or is sent twice changes nothing.

create unlogged table :schema.worker (
  worker_id text collate "C" not null,
  queues text[] not null,
  kinds text[] not null,
  slots integer not null,
  running integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  constraint worker_pkey primary key (worker_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

comment on table :schema.worker is 'The workers that have been seen within the last minute. Each writes its row every few seconds and removes it when it stops; rows of those that died are removed by the others.';
comment on column :schema.worker.worker_id is 'host:process:random part.';
comment on column :schema.worker.queues is 'The queues it claims from.';
comment on column :schema.worker.kinds is 'The kinds it has handlers for.';
comment on column :schema.worker.slots is 'How many jobs it runs at once at most.';
comment on column :schema.worker.running is 'How many ran when it was seen.';

create unlogged table :schema.worker_window (
  queue text collate "C" not null,
  window_at timestamptz not null,
  worker_id text collate "C" not null,
  part integer not null,
  tenants text[] not null,
  started integer[] not null,
  completed integer[] not null,
  failed integer[] not null,
  busy_seconds real[] not null,
  wait_places smallint[] not null,
  wait_buckets smallint[] not null,
  wait_jobs integer[] not null,
  run_places smallint[] not null,
  run_buckets smallint[] not null,
  run_jobs integer[] not null,
  constraint worker_window_pkey primary key (queue, window_at, worker_id, part)
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.1, toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_delay = 0
);

comment on table :schema.worker_window is 'What one worker counted in one minute of the database''s clock, for up to 1,000 of its tenants; kept for an hour. Read it through tenant_window and tenant_histogram.';
comment on column :schema.worker_window.part is 'A worker that served more than 1,000 tenants in the minute has several rows.';
comment on column :schema.worker_window.tenants is 'The place of a tenant in here is its place in started, completed, failed and busy_seconds.';
comment on column :schema.worker_window.started is 'Jobs that it claimed to run.';
comment on column :schema.worker_window.completed is 'Jobs whose completion was recorded.';
comment on column :schema.worker_window.failed is 'Attempts that failed, whether they are tried again or not.';
comment on column :schema.worker_window.busy_seconds is 'Time of its slots: each job for as long as its handler ran in this minute.';
comment on column :schema.worker_window.wait_places is 'With wait_buckets and wait_jobs: how many jobs of the tenant in this place (from 1) waited for how long, from being due to being claimed. Only what is not zero.';
comment on column :schema.worker_window.wait_buckets is 'Bucket 0 is up to 1 ms, bucket n from 2^((n-1)/4) to 2^(n/4) ms, bucket 106 also everything longer.';
comment on column :schema.worker_window.run_places is 'With run_buckets and run_jobs, the same for how long the handlers of jobs ran.';

-- Says that a worker is there, and forgets those that have not said so for a minute. Answers with the database's time in
-- milliseconds since 1970, by which workers divide what they count into minutes.
create function :schema.beat_v1(
  _worker_id text, _queues text[], _kinds text[], _slots integer, _running integer, _age_ms double precision
) returns double precision
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
begin
  insert into :schema.worker as worker (worker_id, queues, kinds, slots, running, started_at, seen_at)
  values (_worker_id, _queues, _kinds, _slots, _running, _now - _age_ms * interval '1 millisecond', _now)
  on conflict (worker_id) do update
  set running = excluded.running, seen_at = excluded.seen_at;
  -- Skips what others look at, so that nobody waits here.
  delete from :schema.worker
  where worker.worker_id in (
    select silent.worker_id from :schema.worker as silent
    where silent.seen_at < _now - interval '1 minute'
    for update skip locked
  );
  return date_part('epoch', _now) * 1000;
end $tenantry$;

-- The last word of a worker that stops.
create function :schema.leave_v1(_worker_id text) returns void
language sql
as $tenantry$
  delete from :schema.worker where worker.worker_id = _worker_id
$tenantry$;

-- Puts down what a worker has counted in one minute so far, for one part of its tenants, in place of what it put down before.
create function :schema.record_numbers_v1(
  _queue text, _minute bigint, _worker_id text, _part integer, _tenants text[],
  _started integer[], _completed integer[], _failed integer[], _busy_seconds real[],
  _wait_places smallint[], _wait_buckets smallint[], _wait_jobs integer[],
  _run_places smallint[], _run_buckets smallint[], _run_jobs integer[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $tenantry$
begin
  insert into :schema.worker_window as worker_window (queue, window_at, worker_id, part, tenants, started, completed, failed,
    busy_seconds, wait_places, wait_buckets, wait_jobs, run_places, run_buckets, run_jobs)
  values (_queue, to_timestamp(_minute * 60), _worker_id, _part, _tenants, _started, _completed, _failed,
    _busy_seconds, _wait_places, _wait_buckets, _wait_jobs, _run_places, _run_buckets, _run_jobs)
  on conflict (queue, window_at, worker_id, part) do update
  set tenants = excluded.tenants, started = excluded.started, completed = excluded.completed, failed = excluded.failed,
      busy_seconds = excluded.busy_seconds,
      wait_places = excluded.wait_places, wait_buckets = excluded.wait_buckets, wait_jobs = excluded.wait_jobs,
      run_places = excluded.run_places, run_buckets = excluded.run_buckets, run_jobs = excluded.run_jobs;
end $tenantry$;

-- Forgets windows that are older than an hour, at most _limit rows a call. Answers with how many.
create function :schema.prune_numbers_v1(_limit integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _forgotten integer;
begin
  delete from :schema.worker_window
  where worker_window.ctid = any (array(
    select old.ctid from :schema.worker_window as old
    where old.window_at < clock_timestamp() - interval '61 minutes'
    limit _limit
    for update skip locked
  ));
  get diagnostics _forgotten = row_count;
  return _forgotten;
end $tenantry$;
