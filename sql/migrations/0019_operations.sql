-- breaking: no
-- Operations on many jobs at once: cancelling, purging and moving what waits.
--
-- Problem.    A backlog may hold millions of jobs, and one transaction over all of them would hold their rows, and keep vacuum
--             from everything, for minutes.
-- Here.       A batch takes the next so many from where the last one stopped, and says where it stopped itself; the client commits
--             after each. The public functions run all batches in the caller's transaction.
-- Cursor.     Jobs that wait are walked by state, kind, tenant and order, each step a range of one index, in the direction in which
--             jobs move from state to state. Rows that somebody holds are passed over at first. So when a walk is over, there is
--             another one, which waits for rows that are held, until one finds nothing: what was promoted or admitted meanwhile is
--             found, and what started meanwhile is left alone. Jobs that are enqueued after the beginning are not looked at.

-- How many jobs of a queue, or of a tenant or a kind of it, run; counted no further than _most.
create function :schema.count_running_v1(_queue text, _tenant text, _kind text, _most integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $tenantry$
begin
  if _tenant is null then
    return (select count(*) from (
      select from :schema.running_job as job where job.queue = _queue and (_kind is null or job.kind = _kind) limit _most
    ) as running);
  end if;
  return (select count(*) from (
    select from :schema.running_job as job
    where job.queue = _queue and job.tenant = _tenant and (_kind is null or job.kind = _kind) limit _most
  ) as running);
end $tenantry$;

-- Waits until the claims of the queue that were under way are over: what they have started is committed then, and the next one
-- sees every setting that was committed before.
create function :schema.await_claim_v1(_queue text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
begin
  perform pg_advisory_xact_lock_shared((quote_ident(:schema_literal) || '.ring')::regclass::oid::integer, hashtext(_queue));
  perform pg_advisory_xact_lock((quote_ident(:schema_literal) || '.queue')::regclass::oid::integer, hashtext(_queue));
end $tenantry$;

-- WALKS

-- Takes the rows of the next jobs that wait, up to _limit, from where the cursor stands (null: the beginning); the cursor is null
-- again when nothing is left.
create function :schema.pick_waiting_v1(_queue text, _tenant text, _kind text, _limit integer, inout cursor jsonb, out ids bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $tenantry$
declare
  _states text[] := array['scheduled', 'blocked', 'available'];
  _state integer;
  _at_kind text;
  _tenant_at text;
  _order_at timestamptz;
  _id bigint;
  _max_id bigint;
  _waits boolean;
  _found_before integer;
  -- Text, because the condition must name the state for the planner to see which index serves it.
  _job text := format('%I.job', :schema_literal);
  _is text;
  _order text;
  _picked bigint[];
begin
  ids := '{}';
  if cursor is null then
    cursor := jsonb_build_object('state', 1, 'max_id', (select max(job.id) from :schema.job), 'waits', false, 'found', 0);
  end if;
  _state := cursor ->> 'state';
  _at_kind := cursor ->> 'kind';
  _tenant_at := cursor ->> 'tenant';
  _order_at := cursor ->> 'order_at';
  _id := cursor ->> 'id';
  _max_id := cursor ->> 'max_id';
  _waits := cursor ->> 'waits';
  _found_before := cursor ->> 'found';
  while _max_id is not null loop
    _is := format('job.queue = $1 and job.state = %L', _states[_state]) || case _state when 2 then ' and job.max_attempts > 0' else '' end;
    _order := case _state when 1 then 'job.run_at' else 'job.order_at' end;
    if _at_kind is null then
      if _kind is not null then
        _at_kind := _kind;
      else
        execute format('select job.kind from %s where %s order by job.kind limit 1', _job, _is) into _at_kind using _queue;
      end if;
      _id := null;
    end if;
    if _at_kind is not null then
      execute format(
        'select array_agg(waiting.id order by waiting.place), (array_agg(waiting.tenant order by waiting.place desc))[1], '
        '  (array_agg(waiting.at order by waiting.place desc))[1], (array_agg(waiting.id order by waiting.place desc))[1] '
        'from (select next.*, row_number() over () as place from ('
        '  select job.id, job.tenant, %2$s as at from %6$s where %1$s and job.kind = $2 %3$s %4$s and job.id <= $3'
        '  order by job.tenant, %2$s, job.id limit $4 for no key update %5$s) as next) as waiting',
        _is, _order,
        case when _tenant is not null then 'and job.tenant = $5' end,
        case when _id is not null then format('and (job.tenant, %s, job.id) > ($6, $7, $8)', _order) end,
        case when not _waits then 'skip locked' end, _job)
      into _picked, _tenant_at, _order_at, _id
      using _queue, _at_kind, _max_id, _limit - cardinality(ids), _tenant, _tenant_at, _order_at, _id;
      ids := ids || coalesce(_picked, '{}');
    end if;
    if cardinality(ids) >= _limit then
      cursor := cursor || jsonb_build_object('state', _state, 'kind', _at_kind, 'tenant', _tenant_at, 'order_at', _order_at, 'id', _id,
        'waits', _waits, 'found', _found_before + cardinality(ids));
      return;
    end if;
    -- The range is through: the next kind, the next state, or the next walk.
    if _at_kind is not null and _kind is null then
      execute format('select job.kind from %s where %s and job.kind > $2 order by job.kind limit 1', _job, _is) into _at_kind using _queue, _at_kind;
    else
      _at_kind := null;
    end if;
    _id := null;
    continue when _at_kind is not null;
    _state := _state + 1;
    if _state > 3 then
      exit when _waits and _found_before + cardinality(ids) = 0;
      cursor := cursor || jsonb_build_object('state', 1, 'kind', null, 'tenant', null, 'order_at', null, 'id', null, 'waits', true, 'found', 0);
      return;
    end if;
  end loop;
  cursor := null;
end $tenantry$;

-- The next batch of each operation, a filter being {}, {"tenant": …}, {"kind": …} or both. Each answers with how many jobs it
-- changed, and with the cursor for the next.

create function :schema.cancel_batch_v1(_queue text, _filter jsonb, _reason text, _limit integer, inout cursor jsonb, out changed integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _ids bigint[];
  _keys text[];
  _history text;
begin
  select picked.cursor, picked.ids into cursor, _ids
  from :schema.pick_waiting_v1(_queue, _filter ->> 'tenant', _filter ->> 'kind', _limit, cursor) as picked;
  select queue.history into _history from :schema.queue where queue.name = _queue;
  with cancelled as (
    delete from :schema.job
    where job.id = any (_ids) and job.queue = _queue and job.state <> 'running'
    returning job.*
  ),
  kept as (
    insert into :schema.job_history (id, queue, kind, tenant, key, state, priority, attempt, max_attempts, run_at, created_at,
      claimed_at, finalized_at, payload, errors, retention)
    select cancelled.id, cancelled.queue, cancelled.kind, cancelled.tenant, cancelled.key, 'cancelled', cancelled.priority, cancelled.attempt,
      cancelled.max_attempts, cancelled.run_at, cancelled.created_at, cancelled.claimed_at, clock_timestamp(),
      case when _history = 'keep-without-payload' then null else cancelled.payload end,
      :schema.append_error_v1(cancelled.errors, cancelled.attempt, jsonb_build_object('name', 'Cancelled', 'message', _reason)),
      'settled'
    from cancelled
    where _history is distinct from 'none'
  )
  -- A job that waits for its key holds nothing of it.
  select count(*), array_agg(distinct cancelled.key) filter (where cancelled.key is not null and cancelled.state <> 'blocked')
  into changed, _keys
  from cancelled;
  perform :schema.free_keys_v1(_queue, _keys);
end $tenantry$;

create function :schema.purge_batch_v1(_queue text, _filter jsonb, _limit integer, inout cursor jsonb, out changed integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _ids bigint[];
  _keys text[];
begin
  select picked.cursor, picked.ids into cursor, _ids
  from :schema.pick_waiting_v1(_queue, _filter ->> 'tenant', _filter ->> 'kind', _limit, cursor) as picked;
  with purged as (
    delete from :schema.job
    where job.id = any (_ids) and job.queue = _queue and job.state <> 'running'
    returning job.state, job.key
  )
  select count(*), array_agg(distinct purged.key) filter (where purged.key is not null and purged.state <> 'blocked')
  into changed, _keys
  from purged;
  perform :schema.free_keys_v1(_queue, _keys);
end $tenantry$;

-- Deletes finished jobs, those that had ended by _until. There are no more when it deletes fewer than _limit.
create function :schema.purge_history_v1(_queue text, _filter jsonb, _until timestamptz, _limit integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _deleted integer;
begin
  delete from :schema.job_history
  where job_history.queue = _queue and job_history.id = any (array(
    select finished.id from :schema.job_history as finished
    where finished.queue = _queue and finished.finalized_at <= _until
      and (not _filter ? 'tenant' or finished.tenant = _filter ->> 'tenant')
      and (not _filter ? 'kind' or finished.kind = _filter ->> 'kind')
    limit _limit
  ));
  get diagnostics _deleted = row_count;
  return _deleted;
end $tenantry$;

-- Moved jobs keep their id, their attempts and their place in the order. In the new queue they wait for their key anew.
create function :schema.move_batch_v1(_queue text, _to_queue text, _filter jsonb, _limit integer, inout cursor jsonb, out changed integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _ids bigint[];
  _keys text[];
  _kinds text[];
  _tenants text[];
  _order_ats timestamptz[];
begin
  select picked.cursor, picked.ids into cursor, _ids
  from :schema.pick_waiting_v1(_queue, _filter ->> 'tenant', _filter ->> 'kind', _limit, cursor) as picked;
  with moved as (
    update :schema.job
    set queue = _to_queue, state = case when job.key is not null and job.state = 'available' then 'blocked' else job.state end
    where job.id = any (_ids) and job.queue = _queue and job.state <> 'running'
    returning job.kind, job.tenant, job.key, job.state, job.order_at
  )
  select count(*), array_agg(distinct moved.key) filter (where moved.key is not null),
         array_agg(moved.kind) filter (where moved.state = 'available'),
         array_agg(moved.tenant) filter (where moved.state = 'available'),
         array_agg(moved.order_at) filter (where moved.state = 'available')
  into changed, _keys, _kinds, _tenants, _order_ats
  from moved;
  perform :schema.free_keys_v1(_queue, _keys);
  if _keys is not null then
    perform :schema.notice_keys_v1(array_fill(_to_queue, array[cardinality(_keys)]), _keys);
  end if;
  if _kinds is not null then
    perform :schema.signal_v1(array_fill(_to_queue, array[cardinality(_kinds)]), _kinds, _tenants, _order_ats);
  end if;
  if changed > 0 then
    perform :schema.wake_v1(array[_to_queue]);
  end if;
end $tenantry$;

-- Tells that keys are used less than they were.
create function :schema.free_keys_v1(_queue text, _keys text[]) returns void
language plpgsql
as $tenantry$
begin
  if _keys is not null then
    perform :schema.notice_keys_v1(array_fill(_queue, array[cardinality(_keys)]), _keys);
    perform :schema.wake_v1(array[_queue]);
  end if;
end $tenantry$;

-- The public functions: all batches in the caller's transaction. Each answers with how many jobs it changed.

create function :schema.cancel_all(queue text, filter jsonb default '{}', reason text default 'cancelled by the operator') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _cursor jsonb;
  _changed integer;
  _total bigint := 0;
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_scope_v1('filter', filter, array['tenant', 'kind']);
  loop
    select batch.cursor, batch.changed into _cursor, _changed from :schema.cancel_batch_v1(queue, filter, reason, 1000, _cursor) as batch;
    _total := _total + _changed;
    exit when _cursor is null;
  end loop;
  return _total;
end $tenantry$;

create function :schema.purge(queue text, filter jsonb default '{}') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _until timestamptz := clock_timestamp();
  _cursor jsonb;
  _changed integer;
  _total bigint := 0;
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_scope_v1('filter', filter, array['tenant', 'kind', 'history']);
  if filter ? 'history' and jsonb_typeof(filter -> 'history') <> 'boolean' then
    raise exception 'expected history of filter to be true or false, got %', left((filter -> 'history')::text, 80) using errcode = 'invalid_parameter_value';
  end if;
  loop
    select batch.cursor, batch.changed into _cursor, _changed from :schema.purge_batch_v1(queue, filter, 1000, _cursor) as batch;
    _total := _total + _changed;
    exit when _cursor is null;
  end loop;
  while filter -> 'history' = 'true' loop
    _changed := :schema.purge_history_v1(queue, filter, _until, 1000);
    _total := _total + _changed;
    exit when _changed = 0;
  end loop;
  return _total;
end $tenantry$;

create function :schema.move_jobs(queue text, to_queue text, filter jsonb default '{}') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _cursor jsonb;
  _changed integer;
  _total bigint := 0;
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_name_v1('to_queue', to_queue);
  perform :schema.check_scope_v1('filter', filter, array['tenant', 'kind']);
  if to_queue = queue then
    raise exception 'expected to_queue to be another queue than %', quote_literal(left(queue, 80)) using errcode = 'invalid_parameter_value';
  end if;
  loop
    select batch.cursor, batch.changed into _cursor, _changed from :schema.move_batch_v1(queue, to_queue, filter, 1000, _cursor) as batch;
    _total := _total + _changed;
    exit when _cursor is null;
  end loop;
  return _total;
end $tenantry$;

comment on function :schema.cancel_all(text, jsonb, text) is
  'Cancels every job of a queue that waits, or those of {"tenant": …}, {"kind": …} or both; what runs goes on. Answers with how many.';
comment on function :schema.purge(text, jsonb) is
  'Deletes every job of a queue that waits without a trace, or those of {"tenant": …}, {"kind": …} or both; with {"history": true} those that have ended too.';
comment on function :schema.move_jobs(text, text, jsonb) is
  'Moves every job that waits to another queue, or those of {"tenant": …}, {"kind": …} or both. They keep id, attempts and order; quotas do not count.';
