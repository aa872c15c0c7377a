-- breaking: no
-- The claim that workers call: one short transaction. It answers with ids only, because the queue's lock must never be held
-- while payloads travel to a client that reads slowly; the jobs are read by claimed_v1, sent along in the same round trip.

create function :schema.claim_v1(
  _queue text, _lease_id uuid, _worker_id text, _kinds text[], _count integer, _lease_ms double precision, _listening boolean,
  out ids bigint[], out next_due_ms double precision
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
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- Its snapshot would be older than the queue's lock, and a limit of 1 would give 2.
    raise exception 'expected the isolation level of a claim to be read committed, got %', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state', hint = 'Begin the transaction with: begin isolation level read committed.';
  end if;
  if _count not between 1 and 500 then
    raise exception 'expected the number of jobs to claim to be from 1 to 500, got %', _count using errcode = 'invalid_parameter_value';
  end if;
  -- A claim lost in a server crash is a job that is available again, so its commit need not wait for the disk under the
  -- queue's lock. Here and not in a SET clause, which would end before the commit.
  perform set_config('synchronous_commit', 'off', true);

  select queue.strategy into _strategy from :schema.queue where queue.name = _queue;
  case coalesce(_strategy, 'fair')
    when 'fair' then ids := :schema.claim_fair_v1(_queue, _lease_id, _kinds, _count);
    when 'fifo' then ids := :schema.claim_fifo_v1(_queue, _lease_id, _kinds, _count);
    when 'round-robin' then ids := :schema.claim_round_robin_v1(_queue, _lease_id, _kinds, _count);
  end case;

  if cardinality(ids) > 0 then
    insert into :schema.lease (id, queue, worker_id, claimed_at, expires_at)
    values (_lease_id, _queue, _worker_id, clock_timestamp(), clock_timestamp() + _lease_ms * interval '1 millisecond');
  end if;
  if cardinality(ids) = _count then
    if _listening then
      delete from :schema.waiter where waiter.queue = _queue and waiter.worker_id = _worker_id;
    end if;
    return;
  end if;

  if _listening then
    insert into :schema.waiter (queue, worker_id) values (_queue, _worker_id) on conflict do nothing;
  end if;
  select min(head.due_ms) into next_due_ms
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    select greatest(0, extract(epoch from job.run_at - clock_timestamp()) * 1000)::double precision as due_ms
    from :schema.job
    where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled'
    order by job.run_at, job.id
    limit 1
  ) as head;
end $tenantry$;

-- The jobs that run under a lease: the second half of a claim, and the way to find a claim whose reply was lost.
create function :schema.claimed_v1(_lease_id uuid) returns table (
  id text, queue text, kind text, tenant text, payload text, attempt integer, max_attempts integer, priority integer,
  run_at_ms double precision, created_at_ms double precision, errors text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $tenantry$
begin
  return query
  select job.id::text, job.queue, job.kind, job.tenant, job.payload::text, job.attempt::integer, job.max_attempts::integer,
         job.priority::integer, (extract(epoch from job.run_at) * 1000)::double precision,
         (extract(epoch from job.created_at) * 1000)::double precision, job.errors::text
  from :schema.job
  where job.lease_id = _lease_id and job.state = 'running'
  order by job.order_at, job.id;
end $tenantry$;
