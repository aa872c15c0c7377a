-- breaking: no
-- Enqueue: one insert, no foreign key, nobody else's row locked, however long the caller's transaction stays open.

-- The channel on which workers of this schema listen. Derived, because a channel name has at most 63 bytes.
create function :schema.channel_v1() returns text
language sql immutable parallel safe
as $tenantry$ select 'tenantry_' || left(md5(:schema_literal), 24) $tenantry$;

-- Notifies the queues in which a worker with free slots listens. A transaction sends equal notifications once.
create function :schema.wake_v1(_queues text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _queue text;
begin
  for _queue in
    select distinct given.queue
    from unnest(_queues) as given (queue)
    where exists (select from :schema.waiter where waiter.queue = given.queue)
  loop
    perform pg_notify(:schema.channel_v1(), _queue);
  end loop;
end $tenantry$;

-- Tells the next claim that these lanes have work, unless the ring holds them ready already. Appends, and so waits for nobody.
-- A claim may empty the lane at this very moment and no signal is left: the walk of discovery heals that.
create function :schema.signal_v1(_queues text[], _kinds text[], _tenants text[]) returns void
language sql
as $tenantry$
  insert into :schema.signal (queue, kind, tenant)
  select lane.queue, lane.kind, lane.tenant
  from (select distinct * from unnest(_queues, _kinds, _tenants) as given (queue, kind, tenant)) as lane
  where not exists (
    select from :schema.ring
    where ring.queue = lane.queue and ring.tenant = lane.tenant and ring.kind = lane.kind and ring.ready
  )
$tenantry$;

-- Inserts jobs given as parallel arrays and answers with their ids in the same order: all or none.
-- A run_at wins over a delay. What is not due yet waits outside the claim index.
create function :schema.enqueue_many_v1(
  _queues text[], _kinds text[], _tenants text[], _payloads text[], _priorities smallint[],
  _run_ats timestamptz[], _delays_ms double precision[], _max_attempts smallint[]
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
begin
  with inserted as (
    insert into :schema.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
    select given.queue, given.kind, given.tenant,
           case when given.due > _now then cast('scheduled' as :schema.job_state) else 'available' end,
           given.priority, given.max_attempts, given.due,
           -- The one static order within a tenant: a point of priority is worth a minute of waiting (ADR 0005).
           given.due - given.priority * interval '1 minute',
           _now, given.payload::json
    from (
      select row.*, coalesce(run_at, _now + coalesce(delay_ms, 0) * interval '1 millisecond') as due
      from unnest(_queues, _kinds, _tenants, _payloads, _priorities, _run_ats, _delays_ms, _max_attempts)
        with ordinality as row (queue, kind, tenant, payload, priority, run_at, delay_ms, max_attempts, place)
      order by place
    ) as given
    returning id, state, queue, kind, tenant
  )
  select array_agg(id order by id),
         array_agg(queue) filter (where state = 'available'),
         array_agg(kind) filter (where state = 'available'),
         array_agg(tenant) filter (where state = 'available')
  into _ids, _ready_queues, _ready_kinds, _ready_tenants
  from inserted;

  if _ready_queues is not null then
    perform :schema.signal_v1(_ready_queues, _ready_kinds, _ready_tenants);
  end if;
  -- Also for scheduled jobs: the worker sets its timer to the first one.
  perform :schema.wake_v1(_queues);
  return coalesce(_ids, '{}');
end $tenantry$;

-- The public entry for triggers and other languages. Options: queue, priority, run_at, delay_ms, max_attempts.
-- It never gains a positional argument.
create function :schema.enqueue(kind text, payload jsonb, tenant text, options jsonb default '{}') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _option text;
  _queue text := coalesce(options ->> 'queue', 'default');
  _priority integer := coalesce((options ->> 'priority')::integer, 0);
  _max_attempts integer := coalesce((options ->> 'max_attempts')::integer, 20);
  _delay_ms double precision := (options ->> 'delay_ms')::double precision;
  _ids bigint[];
begin
  select key into _option from jsonb_object_keys(options) as key
  where key not in ('queue', 'priority', 'run_at', 'delay_ms', 'max_attempts') limit 1;
  if _option is not null then
    raise exception 'expected options to be among queue, priority, run_at, delay_ms, max_attempts, got "%"', _option using errcode = 'invalid_parameter_value';
  end if;
  if coalesce(octet_length(kind), 0) not between 1 and 255 then
    raise exception 'expected kind to be a text of 1 to 255 bytes, got %', coalesce(quote_literal(left(kind, 40)), 'null') using errcode = 'invalid_parameter_value';
  end if;
  if coalesce(octet_length(tenant), 0) not between 1 and 255 then
    raise exception 'expected tenant to be a text of 1 to 255 bytes, got %', coalesce(quote_literal(left(tenant, 40)), 'null') using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(_queue) not between 1 and 255 then
    raise exception 'expected queue to be a text of 1 to 255 bytes, got %', quote_literal(left(_queue, 40)) using errcode = 'invalid_parameter_value';
  end if;
  if payload is null then
    raise exception 'expected payload to be JSON, got null; pass ''null''::jsonb for the JSON value null' using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(payload::text) > 262144 then
    raise exception 'expected payload to be at most 262144 bytes of JSON, got %; store the input in a table and pass its key', octet_length(payload::text) using errcode = 'invalid_parameter_value';
  end if;
  if _priority not between -1000 and 1000 then
    raise exception 'expected priority to be from -1000 to 1000, got %', _priority using errcode = 'invalid_parameter_value';
  end if;
  if _max_attempts not between 1 and 10000 then
    raise exception 'expected max_attempts to be from 1 to 10000, got %', _max_attempts using errcode = 'invalid_parameter_value';
  end if;
  if _delay_ms is not null and _delay_ms not between 0 and 315360000000 then
    raise exception 'expected delay_ms to be from 0 to 315360000000 (ten years), got %', _delay_ms using errcode = 'invalid_parameter_value';
  end if;
  _ids := :schema.enqueue_many_v1(
    array[_queue], array[kind], array[tenant], array[payload::text], array[_priority::smallint],
    array[(options ->> 'run_at')::timestamptz], array[_delay_ms], array[_max_attempts::smallint]);
  return _ids[1];
end $tenantry$;

comment on function :schema.enqueue(text, jsonb, text, jsonb) is
  'Enqueues one job in the calling transaction. Options: queue, priority, run_at, delay_ms, max_attempts.';
