-- breaking: no
-- Enqueue: one insert, no foreign key, nobody else's row locked, however long the caller's transaction stays open.

-- Inserts jobs given as parallel arrays and answers with their ids in the same order: all or none.
-- A run_at wins over a delay. What is not due yet waits outside the claim index.
create function :schema.enqueue_many_v1(
  _queues text[], _kinds text[], _tenants text[], _payloads text[], _priorities smallint[],
  _run_ats timestamptz[], _delays_ms double precision[], _max_attempts smallint[], _keys text[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $tenantry$
declare
  _now timestamptz := statement_timestamp();
  _ids bigint[];
  _ready_queues text[];
  _ready_kinds text[];
  _ready_tenants text[];
  _ready_order_ats timestamptz[];
  _keyed_queues text[];
  _keyed_keys text[];
begin
  -- Most queues have no row, and then this is one probe.
  if exists (
    select from :schema.queue
    where queue.name = any (_queues) and (queue.quota is not null or queue.tenant_quota is not null or queue.governed and exists (
      select from :schema.tenant where tenant.queue = queue.name and tenant.quota is not null
    ))
  ) then
    perform :schema.check_quota_v1(_queues, _tenants);
  end if;
  with inserted as (
    insert into :schema.job (queue, kind, tenant, key, state, priority, max_attempts, run_at, order_at, created_at, payload)
    select given.queue, given.kind, given.tenant, given.key,
           -- A job with a key waits until a claim admits it: only claims take turns, and so can count exactly.
           case when given.due > _now then cast('scheduled' as :schema.job_state) when given.key is not null then 'blocked' else 'available' end,
           given.priority, given.max_attempts, given.due,
           -- The one static order within a tenant: a point of priority is worth a minute of waiting (ADR 0005).
           given.due - given.priority * interval '1 minute',
           _now, given.payload::json
    from (
      select row.*, coalesce(run_at, _now + coalesce(delay_ms, 0) * interval '1 millisecond') as due
      from unnest(_queues, _kinds, _tenants, _payloads, _priorities, _run_ats, _delays_ms, _max_attempts, _keys)
        with ordinality as row (queue, kind, tenant, payload, priority, run_at, delay_ms, max_attempts, key, place)
      order by place
    ) as given
    returning id, state, queue, kind, tenant, key, order_at
  )
  select array_agg(id order by id),
         array_agg(queue) filter (where state = 'available'),
         array_agg(kind) filter (where state = 'available'),
         array_agg(tenant) filter (where state = 'available'),
         array_agg(order_at) filter (where state = 'available'),
         array_agg(queue) filter (where state = 'blocked'),
         array_agg(key) filter (where state = 'blocked')
  into _ids, _ready_queues, _ready_kinds, _ready_tenants, _ready_order_ats, _keyed_queues, _keyed_keys
  from inserted;

  if _ready_queues is not null then
    perform :schema.signal_v1(_ready_queues, _ready_kinds, _ready_tenants, _ready_order_ats);
  end if;
  if _keyed_keys is not null then
    perform :schema.notice_keys_v1(_keyed_queues, _keyed_keys);
  end if;
  -- Also for scheduled jobs: the worker sets its timer to the first one.
  perform :schema.wake_v1(_queues);
  return coalesce(_ids, '{}');
end $tenantry$;

-- The public entry for triggers and other languages. Options: queue, priority, run_at, delay_ms, max_attempts, key.
-- It never gains a positional argument.
create function :schema.enqueue(kind text, payload jsonb, tenant text, options jsonb default '{}') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _option text;
  _given text;
  _queue text := coalesce(options ->> 'queue', 'default');
  _run_at timestamptz;
  _priority numeric;
  _max_attempts numeric;
  _delay_ms double precision;
  _ids bigint[];
begin
  select option.key, option.value::text into _option, _given
  from jsonb_each(options) as option
  where case
    when option.key in ('queue', 'run_at', 'key') then jsonb_typeof(option.value) not in ('string', 'null')
    when option.key in ('priority', 'max_attempts', 'delay_ms') then jsonb_typeof(option.value) not in ('number', 'null')
    else true
  end
  limit 1;
  if _option in ('queue', 'run_at', 'key', 'priority', 'max_attempts', 'delay_ms') then
    raise exception 'expected % to be a %, got %', _option, case when _option in ('queue', 'run_at', 'key') then 'string' else 'number' end, left(_given, 40)
      using errcode = 'invalid_parameter_value';
  elsif _option is not null then
    raise exception 'expected options to be among queue, priority, run_at, delay_ms, max_attempts, key, got "%"', left(_option, 40) using errcode = 'invalid_parameter_value';
  end if;
  _run_at := options ->> 'run_at';
  _priority := coalesce((options ->> 'priority')::numeric, 0);
  _max_attempts := coalesce((options ->> 'max_attempts')::numeric, 20);
  _delay_ms := (options ->> 'delay_ms')::double precision;
  if coalesce(octet_length(kind), 0) not between 1 and 255 then
    raise exception 'expected kind to be a text of 1 to 255 bytes, got %', coalesce(quote_literal(left(kind, 40)), 'null') using errcode = 'invalid_parameter_value';
  end if;
  if coalesce(octet_length(tenant), 0) not between 1 and 255 then
    raise exception 'expected tenant to be a text of 1 to 255 bytes, got %', coalesce(quote_literal(left(tenant, 40)), 'null') using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(_queue) not between 1 and 255 then
    raise exception 'expected queue to be a text of 1 to 255 bytes, got %', quote_literal(left(_queue, 40)) using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(options ->> 'key') not between 1 and 255 then
    raise exception 'expected key to be a text of 1 to 255 bytes, got %', quote_literal(left(options ->> 'key', 40)) using errcode = 'invalid_parameter_value';
  end if;
  if payload is null then
    raise exception 'expected payload to be JSON, got null; pass ''null''::jsonb for the JSON value null' using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(payload::text) > 262144 then
    raise exception 'expected payload to be at most 262144 bytes of JSON, got %; store the input in a table and pass its key', octet_length(payload::text) using errcode = 'invalid_parameter_value';
  end if;
  if _priority not between -1000 and 1000 or _priority <> trunc(_priority) then
    raise exception 'expected priority to be an integer from -1000 to 1000, got %', left(_priority::text, 40) using errcode = 'invalid_parameter_value';
  end if;
  if _max_attempts not between 1 and 10000 or _max_attempts <> trunc(_max_attempts) then
    raise exception 'expected max_attempts to be an integer from 1 to 10000, got %', left(_max_attempts::text, 40) using errcode = 'invalid_parameter_value';
  end if;
  -- Not infinity, which has no distance from now; and what JavaScript's Date can show.
  if _run_at not between '0001-01-01 00:00:00+00' and '9999-12-31 23:59:59+00' then
    raise exception 'expected run_at to be a time in the years 1 to 9999, got %', _run_at using errcode = 'invalid_parameter_value';
  end if;
  if _delay_ms is not null and _delay_ms not between 0 and 315360000000 then
    raise exception 'expected delay_ms to be from 0 to 315360000000 (ten years), got %', _delay_ms using errcode = 'invalid_parameter_value';
  end if;
  _ids := :schema.enqueue_many_v1(
    array[_queue], array[kind], array[tenant], array[payload::text], array[_priority::smallint],
    array[_run_at], array[_delay_ms], array[_max_attempts::smallint], array[options ->> 'key']);
  return _ids[1];
end $tenantry$;

comment on function :schema.enqueue(text, jsonb, text, jsonb) is
  'Enqueues one job in the calling transaction. Options: queue, priority, run_at, delay_ms, max_attempts, key.';
