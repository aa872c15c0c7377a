-- breaking: no
-- Settling: every statement names the lease, so a former owner changes nothing. They answer with the ids whose lease was
-- lost: normally with none, so that nothing need be sent. Rows are taken in the order of their ids, so that batches cannot deadlock.

-- Completes jobs. They leave the hot table here and go to the history unless the queue keeps none.
create function :schema.complete_v1(_queue text, _ids bigint[], _lease_ids uuid[], _finished_leases uuid[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
declare
  _history text;
  -- Whether the next claim must know what ends here, besides jobs with a key.
  _noticed boolean;
  _settled bigint[];
  _ended :schema.ended_job[];
  -- Mostly all jobs were claimed together; then one comparison will do for each.
  _lease_id uuid := case when _lease_ids[1] = all (_lease_ids) then _lease_ids[1] end;
begin
  select queue.history, queue.limited or queue.charge = 'time' into _history, _noticed from :schema.queue where queue.name = _queue;
  if _history = 'none' then
    with completed as (
      delete from :schema.job
      where job.id = any (_ids) and job.lease_id = coalesce(_lease_id, _lease_ids[array_position(_ids, job.id)])
      returning job.id, job.tenant, job.kind, job.key, job.claimed_at, job.charged
    )
    select array_agg(completed.id),
           array_agg(cast((_queue, completed.tenant, completed.kind, completed.key, completed.claimed_at, completed.charged) as :schema.ended_job))
             filter (where _noticed or completed.key is not null)
    into _settled, _ended
    from completed;
  else
    with completed as (
      delete from :schema.job
      where job.id = any (_ids) and job.lease_id = coalesce(_lease_id, _lease_ids[array_position(_ids, job.id)])
      returning job.*
    ),
    kept as (
      insert into :schema.job_history (id, queue, kind, tenant, key, state, priority, attempt, max_attempts, run_at, created_at,
        claimed_at, finalized_at, payload, errors, retention)
      select completed.id, completed.queue, completed.kind, completed.tenant, completed.key, 'completed', completed.priority,
        completed.attempt, completed.max_attempts, completed.run_at, completed.created_at, completed.claimed_at, clock_timestamp(),
        case when _history = 'keep-without-payload' then null else completed.payload end, completed.errors, 'settled'
      from completed
    )
    select array_agg(completed.id),
           array_agg(cast((_queue, completed.tenant, completed.kind, completed.key, completed.claimed_at, completed.charged) as :schema.ended_job))
             filter (where _noticed or completed.key is not null)
    into _settled, _ended
    from completed;
  end if;
  if _ended is not null then
    perform :schema.notice_ended_v1(_ended);
  end if;
  return :schema.settled_v1(_ids, _settled, _finished_leases);
end $tenantry$;

-- The end of every settling: removes the rows of the leases that the worker knows to hold nothing any more, and answers with the
-- ids that were not settled, because their lease was lost. Whether it is right is not checked here, at the price of looking at
-- every row just deleted: were it wrong, heal_leases_v1 would bring the row back.
create function :schema.settled_v1(_ids bigint[], _settled bigint[], _finished_leases uuid[]) returns bigint[]
language plpgsql
as $tenantry$
declare
  _lease_id uuid;
begin
  foreach _lease_id in array _finished_leases loop
    delete from :schema.lease where lease.id = _lease_id;
  end loop;
  if cardinality(_settled) = cardinality(_ids) then
    return '{}';
  end if;
  return array(select unnest(_ids) except select unnest(_settled));
end $tenantry$;

-- Gives jobs back. retry: due after the delay, with the error; snooze: due after the delay, the attempt does not count;
-- release: available at once in its old place, the attempt does not count.
create function :schema.requeue_v1(
  _queue text, _ids bigint[], _lease_ids uuid[], _outcomes text[], _delays_ms double precision[], _errors jsonb[], _finished_leases uuid[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
declare
  _settled bigint[];
  _queues text[];
  _kinds text[];
  _tenants text[];
  _order_ats timestamptz[];
  _ended :schema.ended_job[];
begin
  with requeued as (
    update :schema.job
    set state = case when settled.delay_ms > 0 then cast('scheduled' as :schema.job_state) when job.key is not null then 'blocked' else 'available' end,
        lease_id = null,
        attempt = job.attempt - (settled.outcome <> 'retry')::integer,
        run_at = case when settled.outcome = 'release' then job.run_at else settled.due end,
        -- A job with a key keeps its place in the order of the key.
        order_at = case when settled.outcome = 'release' or job.key is not null then job.order_at else settled.due - job.priority * interval '1 minute' end,
        errors = case when settled.error is null then job.errors else :schema.append_error_v1(job.errors, job.attempt, settled.error) end
    from (
      select given.*, clock_timestamp() + given.delay_ms * interval '1 millisecond' as due
      from unnest(_ids, _lease_ids, _outcomes, _delays_ms, _errors) as given (id, lease_id, outcome, delay_ms, error)
    ) as settled
    where job.id = settled.id and job.lease_id = settled.lease_id
    returning job.id, job.queue, job.kind, job.tenant, job.key, job.state, job.order_at, job.claimed_at, job.charged
  )
  select array_agg(requeued.id),
         array_agg(cast((_queue, requeued.tenant, requeued.kind, requeued.key, requeued.claimed_at, requeued.charged) as :schema.ended_job)),
         array_agg(requeued.queue) filter (where requeued.state = 'available'),
         array_agg(requeued.kind) filter (where requeued.state = 'available'),
         array_agg(requeued.tenant) filter (where requeued.state = 'available'),
         array_agg(requeued.order_at) filter (where requeued.state = 'available')
  into _settled, _ended, _queues, _kinds, _tenants, _order_ats
  from requeued;
  if _settled is not null then
    perform :schema.notice_ended_v1(_ended);
  end if;
  if _queues is not null then
    perform :schema.signal_v1(_queues, _kinds, _tenants, _order_ats);
  end if;
  if _settled is not null then
    perform :schema.wake_v1(array[_queue]);
  end if;
  return :schema.settled_v1(_ids, _settled, _finished_leases);
end $tenantry$;

-- Ends jobs without success: cancelled (kept as the queue says) or discarded (always kept whole).
create function :schema.finalize_v1(
  _queue text, _ids bigint[], _lease_ids uuid[], _states text[], _errors jsonb[], _finished_leases uuid[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
declare
  _history text;
  _settled bigint[];
  _ended :schema.ended_job[];
begin
  select queue.history into _history from :schema.queue where queue.name = _queue;
  with finalized as (
    delete from :schema.job
    using unnest(_ids, _lease_ids, _states, _errors) as settled (id, lease_id, state, error)
    where job.id = settled.id and job.lease_id = settled.lease_id
    returning job.*, settled.state as final_state, settled.error
  ),
  kept as (
    insert into :schema.job_history (id, queue, kind, tenant, key, state, priority, attempt, max_attempts, run_at, created_at,
      claimed_at, finalized_at, payload, errors, retention)
    select finalized.id, finalized.queue, finalized.kind, finalized.tenant, finalized.key, finalized.final_state, finalized.priority,
      finalized.attempt, finalized.max_attempts, finalized.run_at, finalized.created_at, finalized.claimed_at, clock_timestamp(),
      case when _history = 'keep-without-payload' and finalized.final_state <> 'discarded' then null else finalized.payload end,
      case when finalized.error is null then finalized.errors
           else :schema.append_error_v1(finalized.errors, finalized.attempt, finalized.error) end,
      case finalized.final_state when 'discarded' then 'discarded' else 'settled' end
    from finalized
    where finalized.final_state = 'discarded' or _history is distinct from 'none'
  )
  select array_agg(finalized.id),
         array_agg(cast((_queue, finalized.tenant, finalized.kind, finalized.key, finalized.claimed_at, finalized.charged) as :schema.ended_job))
  into _settled, _ended
  from finalized;
  if _settled is not null then
    perform :schema.notice_ended_v1(_ended);
  end if;
  return :schema.settled_v1(_ids, _settled, _finished_leases);
end $tenantry$;

-- Cancels a job that waits. False when it runs already, is finished, or does not exist; no lease is involved.
create function :schema.cancel_v1(_id bigint, _reason text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $tenantry$
declare
  _cancelled boolean;
  _queue text;
  _key text;
begin
  with cancelled as (
    delete from :schema.job
    where job.id = _id and job.state <> 'running'
    returning job.*
  ),
  kept as (
    insert into :schema.job_history (id, queue, kind, tenant, key, state, priority, attempt, max_attempts, run_at, created_at,
      claimed_at, finalized_at, payload, errors, retention)
    select cancelled.id, cancelled.queue, cancelled.kind, cancelled.tenant, cancelled.key, 'cancelled', cancelled.priority, cancelled.attempt,
      cancelled.max_attempts, cancelled.run_at, cancelled.created_at, cancelled.claimed_at, clock_timestamp(),
      case when queue.history = 'keep-without-payload' then null else cancelled.payload end,
      :schema.append_error_v1(cancelled.errors, cancelled.attempt, jsonb_build_object('name', 'Cancelled', 'message', _reason)),
      'settled'
    from cancelled
    left join :schema.queue on queue.name = cancelled.queue
    where queue.history is distinct from 'none'
  )
  select true, cancelled.queue, cancelled.key into _cancelled, _queue, _key from cancelled;
  if _key is not null then
    perform :schema.notice_keys_v1(array[_queue], array[_key]);
    perform :schema.wake_v1(array[_queue]);
  end if;
  return coalesce(_cancelled, false);
end $tenantry$;
