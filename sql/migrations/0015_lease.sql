-- breaking: no
-- Leases: one row a claim. A heartbeat prolongs rows of this table and rewrites no job.

-- Makes the lease of a claim that took something.
create function :schema.hold_v1(_queue text, _lease_id uuid, _worker_id text, _lease_ms double precision) returns void
-- A function in SQL would be parsed and planned at every call, which costs more than the statement.
language plpgsql
as $tenantry$
begin
  insert into :schema.lease (id, queue, worker_id, claimed_at, expires_at)
  values (_lease_id, _queue, _worker_id, clock_timestamp(), clock_timestamp() + _lease_ms * interval '1 millisecond');
end $tenantry$;

-- Prolongs leases and answers with those that are still held whole. One that is missing was reclaimed, or is being reclaimed
-- job by job: see reclaim_v1.
create function :schema.extend_v1(_lease_ids uuid[], _lease_ms double precision) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
begin
  return query
  update :schema.lease
  set expires_at = clock_timestamp() + _lease_ms * interval '1 millisecond'
  -- Unequal, not greater: no condition for lease_expiry, through which PostgreSQL might read all leases.
  where lease.id = any (_lease_ids) and lease.expires_at <> '-infinity'
  returning lease.id;
end $tenantry$;

-- Takes back the jobs of leases that ran out, at most _limit leases a call. A job with attempts left becomes due again after
-- a back-off (full jitter, 1 s doubled with each attempt, at most 5 minutes); the others are discarded, with the reason.
-- Skips whatever somebody holds: a job whose settling is under way is left to it, and its lease stays for the next call.
-- Answers with how many leases it looked at, so that the caller goes on while there are as many as it asked for.
create function :schema.reclaim_v1(_limit integer, out leases integer, out retried integer, out discarded integer, out next_due_ms double precision)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _lease_ids uuid[];
  _ids bigint[];
  _queues text[];
  _ended :schema.ended_job[];
begin
  leases := 0;
  retried := 0;
  discarded := 0;
  _lease_ids := array(
    select lease.id from :schema.lease
    where lease.expires_at < _now
    order by lease.expires_at
    limit _limit
    for update skip locked
  );
  leases := cardinality(_lease_ids);
  if leases = 0 then
    return;
  end if;
  _ids := array(
    select job.id from :schema.job
    where job.lease_id = any (_lease_ids) and job.state = 'running'
    for update skip locked
  );

  with expired as (
    update :schema.job
    set state = 'scheduled',
        lease_id = null,
        run_at = backoff.due,
        order_at = case when job.key is null then backoff.due - job.priority * interval '1 minute' else job.order_at end,
        errors = :schema.append_error_v1(job.errors, job.attempt,
          '{"name": "LeaseExpired", "message": "the worker stopped extending its lease while the job was running"}')
    from (
      select due.id, clock_timestamp() + random() * least(300, power(2, least(due.attempt, 20) - 1)) * interval '1 second' as due
      from :schema.job as due
      where due.id = any (_ids)
    ) as backoff
    where job.id = backoff.id and job.attempt < job.max_attempts
    returning job.queue, job.tenant, job.kind, job.key, job.run_at, job.claimed_at, job.charged
  )
  select count(*), array_agg(expired.queue),
         array_agg(cast((expired.queue, expired.tenant, expired.kind, expired.key, expired.claimed_at, expired.charged) as :schema.ended_job)),
         case when count(*) > 0 then greatest(0, extract(epoch from min(expired.run_at) - clock_timestamp()) * 1000) end
  into retried, _queues, _ended, next_due_ms
  from expired;
  if retried > 0 then
    perform :schema.notice_ended_v1(_ended);
    perform :schema.wake_v1(_queues);
  end if;

  if retried < cardinality(_ids) then
    with gone as (
      delete from :schema.job
      where job.id = any (_ids) and job.attempt >= job.max_attempts and job.state = 'running'
      returning *
    ),
    kept as (
      insert into :schema.job_history (id, queue, kind, tenant, key, state, priority, attempt, max_attempts, run_at, created_at,
        claimed_at, finalized_at, payload, errors, retention)
      select gone.id, gone.queue, gone.kind, gone.tenant, gone.key, 'discarded', gone.priority, gone.attempt, gone.max_attempts, gone.run_at,
        gone.created_at, gone.claimed_at, clock_timestamp(), gone.payload,
        :schema.append_error_v1(gone.errors, gone.attempt,
          '{"name": "LeaseExpired", "message": "the worker stopped extending its lease during the last attempt"}'),
        'discarded'
      from gone
    )
    select count(*), array_agg(cast((gone.queue, gone.tenant, gone.kind, gone.key, gone.claimed_at, gone.charged) as :schema.ended_job))
    into discarded, _ended
    from gone;
    if discarded > 0 then
      perform :schema.notice_ended_v1(_ended);
    end if;
  end if;

  delete from :schema.lease
  where lease.id = any (_lease_ids)
    and not exists (select from :schema.job where job.lease_id = lease.id and job.state = 'running');
  -- What is left of a lease must not be extended: its worker would not learn that it has lost the rest.
  update :schema.lease set expires_at = '-infinity'
  where lease.id = any (_lease_ids) and lease.expires_at <> '-infinity';
end $tenantry$;

-- The errors of a job with one more, stamped with its attempt and the database's time; the newest 20 are kept.
create function :schema.append_error_v1(_errors jsonb, _attempt integer, _error jsonb) returns jsonb
language sql
as $tenantry$
  select case when jsonb_array_length(coalesce(_errors, '[]')) >= 20 then _errors - 0 else coalesce(_errors, '[]') end
    || jsonb_build_array(_error || jsonb_build_object('attempt', _attempt, 'at', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
$tenantry$;
