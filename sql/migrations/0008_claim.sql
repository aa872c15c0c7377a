-- breaking: no
-- The claim that workers call: one short transaction. It answers with a number only, because the queue's lock must never be held
-- while payloads travel to a client that reads slowly; the jobs are read by claimed_v1, sent along in the same round trip.

create function :schema.claim_v1(
  _queue text, _lease_id uuid, _worker_id text, _kinds text[], _count integer, _lease_ms double precision, _listening boolean,
  out claimed integer, out interleave boolean, out next_due_ms double precision
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

  select queue.strategy into _strategy from :schema.queue where queue.name = _queue;
  -- Those of one claim are started in turns between the tenants, unless the order of arrival rules.
  interleave := coalesce(_strategy, 'fair') <> 'fifo';
  case coalesce(_strategy, 'fair')
    when 'fair' then claimed := :schema.claim_fair_v1(_queue, _lease_id, _kinds, _count);
    when 'fifo' then claimed := :schema.claim_fifo_v1(_queue, _lease_id, _kinds, _count);
    when 'round-robin' then claimed := :schema.claim_round_robin_v1(_queue, _lease_id, _kinds, _count);
  end case;

  if claimed > 0 then
    insert into :schema.lease (id, queue, worker_id, claimed_at, expires_at)
    values (_lease_id, _queue, _worker_id, clock_timestamp(), clock_timestamp() + _lease_ms * interval '1 millisecond');
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
  select min(head.due_ms) into next_due_ms
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    select greatest(0, extract(epoch from job.run_at - clock_timestamp()) * 1000)::double precision as due_ms
    from :schema.job
    where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.attempt >= 0
    order by job.run_at, job.id
    limit 1
  ) as head;
end $tenantry$;

-- The jobs that run under a lease: the second half of a claim, and the way to find a claim whose reply was lost.
create function :schema.claimed_v1(_lease_id uuid) returns table (
  id bigint, queue text, kind text, tenant text, payload json, attempt smallint, max_attempts smallint, priority smallint,
  run_at_seconds double precision, created_at_seconds double precision, errors jsonb
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
  select job.id, job.queue, job.kind, job.tenant, job.payload, job.attempt, job.max_attempts, job.priority,
         date_part('epoch', job.run_at), date_part('epoch', job.created_at), job.errors
  from :schema.job
  where job.lease_id = _lease_id and job.state = 'running'
  order by job.order_at, job.id;
end $tenantry$;
