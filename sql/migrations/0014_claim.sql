-- breaking: no
-- The claim that workers call: one short transaction. It answers with a number only, because the queue's lock must never be held
-- while payloads travel to a client that reads slowly; the jobs are read by claimed_v1, sent along in the same round trip.

create function :schema.claim_v1(
  _queue text, _lease_id uuid, _worker_id text, _kinds text[], _count integer, _lease_ms double precision, _listening boolean,
  out claimed integer, out interleave boolean, out held_back boolean, out next_due_ms double precision
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
-- Only one plan must exist for each statement, whatever the statistics say: the tables are empty one moment and full the next.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $tenantry$
declare
  _strategy text;
  _governed boolean;
  _allowed integer;
  _next_ms double precision;
  _set text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- Its snapshot would be older than the queue's lock, and a limit of 1 would give 2.
    raise exception 'expected the isolation level of a claim to be read committed, got %', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state', hint = 'Begin the transaction with: begin isolation level read committed.';
  end if;
  if coalesce(_count, 0) not between 1 and 500 then
    raise exception 'expected the number of jobs to claim to be from 1 to 500, got %', coalesce(_count::text, 'null') using errcode = 'invalid_parameter_value';
  end if;
  -- A claim lost in a server crash is a job that is available again, so its commit need not wait for the disk under the
  -- queue's lock. Here and not in a SET clause, which would end before the commit.
  _set := set_config('synchronous_commit', 'off', true);

  select queue.strategy, queue.governed or queue.paused_at is not null into _strategy, _governed from :schema.queue where queue.name = _queue;
  -- Those of one claim are started in turns between the tenants, unless the order of arrival rules.
  interleave := coalesce(_strategy, 'fair') <> 'fifo';
  held_back := false;
  if coalesce(_strategy, 'fair') = 'fair' then
    claimed := :schema.claim_fair_v1(_queue, _lease_id, _worker_id, _kinds, _count, _lease_ms);
  else
    _allowed := :schema.prepare_beside_v1(_queue, _strategy, _kinds, _count, coalesce(_governed, false));
    claimed := case when _allowed = 0 then 0
                    when _strategy = 'fifo' then :schema.claim_fifo_v1(_queue, _lease_id, _kinds, _allowed)
                    else :schema.claim_round_robin_v1(_queue, _lease_id, _kinds, _allowed) end;
    if claimed > 0 then
      perform :schema.hold_v1(_queue, _lease_id, _worker_id, _lease_ms);
    end if;
    if _governed and claimed > 0 then
      perform :schema.debit_v1(_queue, '{}', '{}', array[claimed], clock_timestamp());
      perform :schema.debit_keys_v1(_queue, _lease_id, clock_timestamp());
    end if;
  end if;

  if claimed = _count then
    if _listening then
      -- Not at once: what is enqueued in a transaction now may be committed when the worker is idle again.
      delete from :schema.waiter
      where waiter.queue = _queue and waiter.worker_id = _worker_id and waiter.seen_at < clock_timestamp() - interval '5 seconds';
    end if;
    return;
  end if;

  if _listening then
    insert into :schema.waiter as waiter (queue, worker_id, seen_at) values (_queue, _worker_id, clock_timestamp())
    on conflict (queue, worker_id) do update set seen_at = excluded.seen_at
    where waiter.seen_at < excluded.seen_at - interval '2 seconds';
  end if;
  if _governed then
    select held.held_back, held.next_ms into held_back, _next_ms from :schema.held_back_v1(_queue, _kinds, _count) as held;
  end if;
  select least(_next_ms, min(head.due_ms)) into next_due_ms
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    select greatest(0, extract(epoch from job.run_at - clock_timestamp()) * 1000)::double precision as due_ms
    from :schema.job
    where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.attempt >= 0
    order by job.run_at, job.id
    limit 1
  ) as head;
end $tenantry$;

-- What a claim of a queue that is not fair must do besides: the jobs that are due, the keys that have work, and the limits of the
-- queue. Its claims run side by side unless it has such limits, or a key has work; then they take turns like fair ones. Answers with
-- how many jobs may be claimed.
create function :schema.prepare_beside_v1(_queue text, _strategy text, _kinds text[], _count integer, _governed boolean) returns integer
language plpgsql
as $tenantry$
declare
  _lock_class integer := (quote_ident(:schema_literal) || '.ring')::regclass::oid::integer;
  -- Held shared by claims that run side by side, so that they can be waited for.
  _beside_class integer := (quote_ident(:schema_literal) || '.queue')::regclass::oid::integer;
  _now timestamptz;
  _is_governed boolean;
  _due boolean;
  _noticed boolean;
  _keys_walk_at timestamptz;
begin
  -- In this order everywhere.
  if _governed or _strategy = 'round-robin' then
    perform pg_advisory_xact_lock(_lock_class, hashtext(_queue));
  end if;
  if _governed then
    -- Those that began before there were limits: what they have started counts.
    perform pg_advisory_xact_lock(_beside_class, hashtext(_queue));
  elsif _strategy = 'fifo' then
    perform pg_advisory_xact_lock_shared(_beside_class, hashtext(_queue));
  end if;
  _now := clock_timestamp();
  select coalesce((select queue.governed or queue.paused_at is not null from :schema.queue where queue.name = _queue), false),
         exists (
           select from unnest(_kinds) as wanted (kind)
           cross join lateral (
             select job.id from :schema.job
             where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.attempt >= 0 and job.run_at <= _now
             order by job.run_at, job.id
             limit 1
           ) as due
         ),
         (select notice.id from :schema.notice where notice.queue = _queue and notice.kind = '' order by notice.id limit 1) is not null,
         (select walk.walk_at from :schema.walk where walk.queue = _queue and walk.kind = '')
  into _is_governed, _due, _noticed, _keys_walk_at;
  if _is_governed and not _governed then
    -- Since a moment ago. To wait for a turn now would be to wait for those who wait for this claim: so it ends.
    return 0;
  end if;
  if _due then
    perform :schema.promote_v1(_queue, _kinds);
    _noticed := true;
  end if;
  if not _governed and (not _noticed and _keys_walk_at > _now or not pg_try_advisory_xact_lock(_lock_class, hashtext(_queue))) then
    return _count;
  end if;
  if _governed then
    perform :schema.admit_due_v1(_queue, _now);
  end if;
  if _keys_walk_at is null or _keys_walk_at <= _now then
    perform :schema.walk_keys_v1(_queue, case when _keys_walk_at is null then 5000 else 8 end, _keys_walk_at is null);
  end if;
  if _noticed then
    perform :schema.fold_notices_v1(_queue, '{}');
  end if;
  return case when _governed then (select caps.room from :schema.caps_v1(_queue, '{}', _count, clock_timestamp()) as caps) else _count end;
end $tenantry$;

-- The jobs that run under a lease: the second half of a claim, and the way to find a claim whose reply was lost.
create function :schema.claimed_v1(_lease_id uuid) returns table (
  id bigint, queue text, kind text, tenant text, key text, payload json, attempt smallint, max_attempts smallint, priority smallint,
  run_at_seconds double precision, created_at_seconds double precision, wait_seconds double precision, errors jsonb
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $tenantry$
begin
  -- date_part, not extract: a double costs a third of a numeric.
  return query
  select job.id, job.queue, job.kind, job.tenant, job.key, job.payload, job.attempt, job.max_attempts, job.priority,
         date_part('epoch', job.run_at), date_part('epoch', job.created_at), date_part('epoch', job.claimed_at - job.run_at), job.errors
  from :schema.job
  where job.lease_id = _lease_id and job.state = 'running'
  order by job.order_at, job.id;
end $tenantry$;
