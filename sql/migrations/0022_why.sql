-- breaking: no
-- Why a job, or the next job of a tenant, does not run: the one rule that binds, with its facts. docs/why.md lists the rules in
-- their order: first what only somebody can end (pauses, missing workers, forgotten transactions), then what ends by itself (keys, limits,
-- rates, turns). Among rules of one sort the wider comes first, since lifting the narrower one would change nothing.
--
-- Everything is found anew from jobs and settings. The ring is asked for turns alone: what it says of parked lanes may be stale.
-- Counts go no further than 1,000, or than the limit that they are compared with.

-- A session as an operator wants to see it. Another user's is shown as far as the server lets the caller see it.
create function :schema.why_session_v1(_pid integer) returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'pid', activity.pid, 'application', coalesce(activity.application_name, ''), 'user', activity.usename, 'state', activity.state,
    'query', left(activity.query, 100), 'query_started_at', activity.query_start,
    'query_ms', round(extract(epoch from clock_timestamp() - activity.query_start) * 1000),
    'transaction_ms', round(extract(epoch from clock_timestamp() - activity.xact_start) * 1000))
  from pg_stat_activity as activity
  where activity.pid = _pid
$tenantry$;

-- Who runs the transactions that a row's xmax names: one transaction, or the members of a multixact. No rows: all have ended.
-- The two sorts of numbers look alike from here. One that is a transaction which runs is taken for that.
create function :schema.why_holders_v1(_xmax xid) returns setof jsonb
language plpgsql
as $tenantry$
declare
  _xids xid[] := array[_xmax];
begin
  if not exists (select from pg_locks where locktype = 'transactionid' and transactionid = _xmax and mode = 'ExclusiveLock') then
    begin
      -- Key shares, as foreign keys take them, keep no claim away.
      _xids := array(select member.xid from pg_get_multixact_members(_xmax) as member where member.mode <> 'keysh');
    exception when invalid_parameter_value or internal_error or data_exception then
      return;
    end;
  end if;
  return query
  select coalesce(:schema.why_session_v1(holder.pid),
    (select jsonb_build_object('prepared', prepared.gid, 'user', prepared.owner,
       'transaction_ms', round(extract(epoch from clock_timestamp() - prepared.prepared) * 1000))
     from pg_prepared_xacts as prepared where prepared.transaction = holder.transactionid),
    jsonb_build_object('pid', holder.pid))
  from pg_locks as holder
  where holder.locktype = 'transactionid' and holder.mode = 'ExclusiveLock' and holder.transactionid = any (_xids);
end $tenantry$;

-- Who keeps claims from a job by a lock on its row; null when nobody does. The row is tried only if somebody seems to have it, and for
-- a moment only: the exception gives it back.
create function :schema.why_row_lock_v1(_id bigint) returns jsonb
language plpgsql
as $tenantry$
declare
  _xmax xid;
  _holders jsonb;
  _free boolean := false;
begin
  select job.xmax into _xmax from :schema.job where job.id = _id;
  if _xmax is null or _xmax = '0'::xid then
    return null;
  end if;
  select jsonb_agg(holder) into _holders from :schema.why_holders_v1(_xmax) as holder;
  if _holders is null then
    return null;
  end if;
  begin
    perform from :schema.job where job.id = _id for no key update skip locked;
    _free := found;
    raise exception 'give the row back' using errcode = 'TN001';
  exception
    when sqlstate 'TN001' then null;
    -- Who may only read cannot try it, and takes what the server says of it for a lock.
    when read_only_sql_transaction or insufficient_privilege then null;
  end;
  return case when not _free then _holders end;
end $tenantry$;

-- Who holds the turn of a queue for longer than a claim would; null when nobody does. A claim waits 3 s at most, and then works for
-- milliseconds.
create function :schema.why_queue_lock_v1(_queue text) returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $tenantry$
  select :schema.why_session_v1(activity.pid)
  from pg_locks as held
  join pg_stat_activity as activity on activity.pid = held.pid
  where held.locktype = 'advisory' and held.granted and held.objsubid = 2
    and held.database = (select oid from pg_database where datname = current_database())
    and held.classid = (quote_ident(:schema_literal) || '.ring')::regclass::oid
    and held.objid::bigint = (hashtext(_queue)::bigint & 4294967295)
    and case when activity.state like 'idle in transaction%' then clock_timestamp() - activity.state_change > interval '1 second'
             else clock_timestamp() - activity.query_start > interval '4 seconds' end
  limit 1
$tenantry$;

-- Who has locked a whole table against claims; null when nobody has.
create function :schema.why_table_lock_v1() returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object('table', class.relname, 'mode', held.mode, 'holders', jsonb_build_array(:schema.why_session_v1(held.pid)))
  from pg_class as class
  join pg_locks as held on held.locktype = 'relation' and held.relation = class.oid and held.granted
  where class.relnamespace = (select namespace.oid from pg_namespace as namespace where namespace.nspname = :schema_literal)
    and class.relname in ('job', 'lease', 'ring', 'queue')
    and held.database = (select oid from pg_database where datname = current_database())
    and (held.mode in ('ExclusiveLock', 'AccessExclusiveLock')
         or class.relname <> 'queue' and held.mode in ('ShareLock', 'ShareRowExclusiveLock'))
    and held.pid <> pg_backend_pid()
  order by class.relname
  limit 1
$tenantry$;

-- The jobs of a scope that have been running longest.
create function :schema.why_oldest_v1(_queue text, _tenant text, _kind text) returns jsonb
language sql
as $tenantry$
  select jsonb_agg(jsonb_build_object('job', oldest.id::text, 'kind', oldest.kind, 'tenant', oldest.tenant,
           'running_ms', round(extract(epoch from clock_timestamp() - oldest.claimed_at) * 1000)) order by oldest.claimed_at)
  from (
    select counted.id, counted.kind, counted.tenant, counted.claimed_at
    from (
      select job.id, job.kind, job.tenant, job.claimed_at from :schema.running_job as job
      where job.queue = _queue
        and (_tenant is null or job.tenant = _tenant) and (_kind is null or job.kind = _kind)
      limit 1000
    ) as counted
    order by counted.claimed_at
    limit 3
  ) as oldest
$tenantry$;

-- Whether a limit on what runs binds: its facts, or null.
create function :schema.why_limit_v1(_queue text, _tenant text, _kind text, _limit integer) returns jsonb
language plpgsql
as $tenantry$
declare
  _running integer;
begin
  if _limit is null then
    return null;
  end if;
  -- One more than the limit, so that too many can be told from enough.
  if _tenant is not null then
    select count(*) into _running from (
      select from :schema.running_job as job where job.queue = _queue and job.tenant = _tenant limit _limit + 1) as counted;
  else
    select count(*) into _running from (
      select from :schema.running_job as job
      where job.queue = _queue and (_kind is null or job.kind = _kind) limit _limit + 1) as counted;
  end if;
  if _running < _limit then
    return null;
  end if;
  return jsonb_build_object('limit', _limit, 'running', _running, 'oldest', coalesce(:schema.why_oldest_v1(_queue, _tenant, _kind), '[]'));
end $tenantry$;

-- Whether a rate binds, for the first job or for one behind _before others that take tokens: its facts, or null.
create function :schema.why_rate_v1(_queue text, _scope text, _name text, _rate double precision, _burst integer, _before integer) returns jsonb
language plpgsql
as $tenantry$
declare
  _lacking_seconds double precision;
  _tokens double precision;
begin
  if _rate is null then
    return null;
  end if;
  select greatest(0, extract(epoch from bucket.full_at - clock_timestamp())) into _lacking_seconds
  from :schema.bucket where bucket.queue = _queue and bucket.scope = _scope and bucket.name = _name;
  -- With the same grain of salt as tokens_v1.
  _tokens := _burst - coalesce(_lacking_seconds, 0) * _rate + 1e-9;
  if _tokens >= _before + 1 then
    return null;
  end if;
  return jsonb_build_object('per_second', _rate, 'burst', _burst, 'tokens', greatest(0, floor(_tokens)), 'before', _before,
    'token_ms', ceil((_before + 1 - _tokens) / _rate * 1000));
end $tenantry$;

-- Whether the key of a job that is not admitted yet binds, and how.
create function :schema.why_key_v1(_job :schema.job, _settings :schema.queue, out rule text, out detail jsonb)
language plpgsql
as $tenantry$
declare
  _own :schema.key;
  _slots integer;
  _holders jsonb;
  _held integer;
  _available integer;
  _before integer;
  _first bigint;
  _retrying record;
begin
  select key.* into _own from :schema.key where key.queue = _job.queue and key.key = _job.key;
  _slots := coalesce(_own.concurrency, _settings.key_concurrency, 1);
  select count(*), count(*) filter (where holder.state = 'available'),
         jsonb_agg(jsonb_build_object('job', holder.id::text, 'state', holder.state, 'kind', holder.kind, 'tenant', holder.tenant))
           filter (where holder.number <= 5)
  into _held, _available, _holders
  from (
    select counted.*, row_number() over () as number
    from (
      select job.id, job.state, job.kind, job.tenant from :schema.job
      where job.queue = _job.queue and job.key = _job.key and job.state in ('running', 'available') and job.id <> _job.id
      order by job.state desc
      limit greatest(_slots, 1)
    ) as counted
  ) as holder;
  select count(*) into _before from (
    select from :schema.job
    where job.queue = _job.queue and job.key = _job.key and job.state = 'blocked' and (job.order_at, job.id) < (_job.order_at, _job.id)
    limit 1000
  ) as counted;
  if _before > 0 then
    select job.id into _first from :schema.job
    where job.queue = _job.queue and job.key = _job.key and job.state = 'blocked'
    order by job.order_at, job.id
    limit 1;
  end if;
  detail := jsonb_build_object('limit', _slots, 'own', _own.concurrency is not null, 'held', _held, 'holders', coalesce(_holders, '[]'),
    'before', _before, 'first', _first::text);
  if _held >= _slots then
    rule := 'key_limit';
    return;
  end if;
  if _slots = 1 then
    select job.id, job.run_at, job.attempt, job.max_attempts, job.errors -> -1 as error into _retrying
    from :schema.job
    where job.queue = _job.queue and job.key = _job.key and job.state = 'scheduled' and job.claimed_at is not null
      and (job.order_at, job.id) < (_job.order_at, _job.id)
    order by job.order_at, job.id
    limit 1;
    if found then
      rule := 'key_retry';
      detail := detail || jsonb_build_object('retrying', _retrying.id::text, 'run_at', _retrying.run_at,
        'due_ms', greatest(0, round(extract(epoch from _retrying.run_at - clock_timestamp()) * 1000)),
        'attempt', _retrying.attempt, 'max_attempts', _retrying.max_attempts, 'error', :schema.why_error_v1(_retrying.error));
      return;
    end if;
  end if;
  if _held + _before >= _slots and :schema.why_rate_v1(_job.queue, 'key', _job.key, coalesce(_own.rate_per_second, _settings.key_rate_per_second),
       coalesce(_own.burst, _settings.key_burst), _available) is null then
    rule := 'key_limit';
    return;
  end if;
  detail := :schema.why_rate_v1(_job.queue, 'key', _job.key, coalesce(_own.rate_per_second, _settings.key_rate_per_second),
    coalesce(_own.burst, _settings.key_burst), _available + _before);
  if detail is not null then
    rule := 'key_rate';
    detail := detail || jsonb_build_object('own', _own.rate_per_second is not null);
  end if;
end $tenantry$;

-- Name and message of a stored error, for a sentence.
create function :schema.why_error_v1(_error jsonb) returns jsonb
language sql immutable
as $tenantry$
  select case when _error is not null then
    jsonb_build_object('name', _error ->> 'name', 'message', left(_error ->> 'message', 200), 'attempt', _error -> 'attempt') end
$tenantry$;

-- The workers of a queue that were seen in the last half minute.
create function :schema.why_workers_v1(
  _queue text, _kind text, out workers integer, out known_kinds text[], out able integer, out slots integer, out busy integer, out kinds text[],
  out last_seen_at timestamptz
)
language plpgsql
as $tenantry$
declare
  _able text[];
begin
  select count(*), coalesce(array_agg(present.worker_id) filter (where _kind = any (present.kinds)), '{}'),
         coalesce(sum(present.slots) filter (where _kind = any (present.kinds)), 0)
  into workers, _able, slots
  from :schema.worker as present
  where _queue = any (present.queues) and present.seen_at > clock_timestamp() - interval '30 seconds';
  able := cardinality(_able);
  known_kinds := array(
    select distinct kind from :schema.worker as present cross join lateral unnest(present.kinds) as kind
    where _queue = any (present.queues) and present.seen_at > clock_timestamp() - interval '30 seconds'
    order by kind limit 50);
  kinds := array(
    select distinct kind from :schema.worker as present cross join lateral unnest(present.kinds) as kind
    where present.worker_id = any (_able));
  select max(present.seen_at) into last_seen_at from :schema.worker as present where _queue = any (present.queues) and _kind = any (present.kinds);
  -- What runs is counted, since what the workers report is some seconds old.
  select count(*) into busy
  from :schema.lease
  cross join lateral (
    select from :schema.job where job.lease_id = lease.id and job.state = 'running' limit 500
  ) as held
  where lease.worker_id = any (_able);
end $tenantry$;

-- How many of its tenant's jobs come before a job, of the kinds that are claimed together with it. Counts to 1,000.
create function :schema.why_own_before_v1(_job :schema.job, _kinds text[]) returns integer
language sql
as $tenantry$
  select count(*)::integer from (
    select from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select from :schema.job
      where job.queue = _job.queue and job.kind = wanted.kind and job.tenant = _job.tenant and job.state = 'available'
        and (job.order_at, job.id) < (_job.order_at, _job.id)
      limit 1000
    ) as earlier
    limit 1000
  ) as counted
$tenantry$;

-- Lanes that the next claim will bring into the ring: those that are signalled and, for a kind that no claim has asked for, all that
-- have jobs. Up to 1,000 of each kind.
create function :schema.why_entrants_v1(_queue text, _kinds text[]) returns table (tenant text, kind text)
language sql
as $tenantry$
  select distinct head.tenant, wanted.kind
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    select signal.tenant from :schema.signal where signal.queue = _queue and signal.kind = wanted.kind order by signal.id limit 1000
  ) as head
  union
  select lane.tenant, wanted.kind
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    with recursive hop as (
      (select job.tenant from :schema.job
       where job.queue = _queue and job.kind = wanted.kind and job.state = 'available' order by job.tenant limit 1)
      union all
      select next.tenant from hop cross join lateral (
        select job.tenant from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.state = 'available' and job.tenant > hop.tenant
        order by job.tenant limit 1
      ) as next
    )
    select hop.tenant from hop limit 1000
  ) as lane
  where not exists (select from :schema.walk where walk.queue = _queue and walk.kind = wanted.kind)
$tenantry$;

-- Who else starts before a pass is reached: among the tenants of a group or, for the empty string, the groups and the tenants without
-- one; and how many jobs they may have until then. Looks at 1,000 lanes of each kind.
create function :schema.why_others_v1(
  _queue text, _grp text, _kinds text[], _starts_at double precision, _name text, _is_group boolean, out entities integer, out jobs double precision
)
language sql
as $tenantry$
  with setting as (
    select coalesce(max(queue.charge), 'jobs') = 'time' as timed from :schema.queue where queue.name = _queue
  ),
  lane as (
    select head.tenant, wanted.kind, head.pass, head.seconds
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select ring.tenant, ring.pass, ring.seconds from :schema.ring
      where ring.queue = _queue and ring.grp = _grp and ring.kind = wanted.kind and ring.ready
        and (ring.pass, ring.tenant) < (_starts_at, _name)
      order by ring.pass, ring.tenant
      limit 1000
    ) as head
    union all
    select entrant.tenant, entrant.kind, greatest(own.pass, :schema.floor_v1(_queue, _grp, entrant.kind, _kinds)), own.seconds
    from :schema.why_entrants_v1(_queue, _kinds) as entrant
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = entrant.tenant
    left join :schema.ring as own on own.queue = _queue and own.tenant = entrant.tenant and own.kind = entrant.kind
    where coalesce(tenant.grp, '') = _grp and not coalesce(own.ready, false) and own.parked_until is null
  )
  select count(*)::integer,
         -- Turns of one job each, those that start at the same pass by their names; as if nobody's backlog ended before.
         coalesce(sum(case
           when entity.name < _name then floor((_starts_at - entity.pass) * entity.weight / greatest(0.001, entity.cost)) + 1
           else ceil((_starts_at - entity.pass) * entity.weight / greatest(0.001, entity.cost))
         end), 0)
  from (
    select lane.tenant as name, min(lane.pass) as pass, coalesce(tenant.weight, 1) as weight,
           case when setting.timed then coalesce(max(lane.seconds), max(walk.seconds), 1) else 1 end as cost
    from setting
    cross join lane
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = lane.tenant
    left join :schema.walk on walk.queue = _queue and walk.kind = lane.kind
    where _is_group or lane.tenant <> _name
    group by lane.tenant, tenant.weight, setting.timed
    union all
    select node.grp, min(node.pass), coalesce(tenant_group.weight, 1),
           case when setting.timed then coalesce(max(walk.seconds), 1) else 1 end
    from setting
    cross join unnest(_kinds) as wanted (kind)
    cross join lateral (
      select group_ring.grp, group_ring.pass from :schema.group_ring
      where _grp = '' and group_ring.queue = _queue and group_ring.kind = wanted.kind and group_ring.ready
      order by group_ring.pass, group_ring.grp
      limit 1000
    ) as node
    left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = node.grp
    left join :schema.walk on walk.queue = _queue and walk.kind = wanted.kind
    where not _is_group or node.grp <> _name
    group by node.grp, tenant_group.weight, setting.timed
  ) as entity
  where (entity.pass, entity.name) < (_starts_at, _name)
$tenantry$;

-- Where a tenant stands: at its own pass or, while it is not in the ring, where its lane of the kind would enter.
create function :schema.why_pass_v1(_queue text, _grp text, _tenant text, _kind text, _kinds text[]) returns double precision
language sql
as $tenantry$
  select coalesce(min(own.pass) filter (where own.ready),
                  greatest(max(own.pass) filter (where own.grp = _grp), :schema.floor_v1(_queue, _grp, _kind, _kinds)))
  from :schema.ring as own
  where own.queue = _queue and own.tenant = _tenant and own.kind = any (_kinds)
$tenantry$;

-- How many turns come before a job in a fair queue.
create function :schema.why_turns_fair_v1(_job :schema.job, _settings :schema.queue, _kinds text[]) returns jsonb
language plpgsql
as $tenantry$
declare
  _own_before integer := :schema.why_own_before_v1(_job, _kinds);
  _tenant :schema.tenant;
  _grp text;
  _cost double precision := 1;
  _starts_at double precision;
  _inside record;
  _outside record;
  _jobs double precision;
begin
  select tenant.* into _tenant from :schema.tenant where tenant.queue = _job.queue and tenant.tenant = _job.tenant;
  _grp := coalesce(_tenant.grp, '');
  if _settings.charge = 'time' then
    select coalesce(
      (select ring.seconds from :schema.ring where ring.queue = _job.queue and ring.tenant = _job.tenant and ring.kind = _job.kind),
      (select walk.seconds from :schema.walk where walk.queue = _job.queue and walk.kind = _job.kind), 1) into _cost;
  end if;
  _starts_at := :schema.why_pass_v1(_job.queue, _grp, _job.tenant, _job.kind, _kinds) + _own_before * _cost / coalesce(_tenant.weight, 1);
  select others.* into _inside from :schema.why_others_v1(_job.queue, _grp, _kinds, _starts_at, _job.tenant, false) as others;
  _jobs := _own_before + _inside.jobs;
  if _grp = '' then
    return jsonb_build_object('own_before', _own_before, 'tenants_before', _inside.entities, 'jobs_before', _jobs,
      'counted_to_the_end', _own_before < 1000 and _inside.entities < 1000);
  end if;
  select coalesce(min(node.pass), 0) + _jobs * _cost / coalesce(max(tenant_group.weight), 1) into _starts_at
  from :schema.group_ring as node
  left join :schema.tenant_group on tenant_group.queue = node.queue and tenant_group.name = node.grp
  where node.queue = _job.queue and node.grp = _grp and node.kind = any (_kinds);
  select others.* into _outside from :schema.why_others_v1(_job.queue, '', _kinds, _starts_at, _grp, true) as others;
  return jsonb_build_object('own_before', _own_before, 'group', _grp, 'tenants_before', _inside.entities, 'others_before', _outside.entities,
    'jobs_before', _jobs + _outside.jobs,
    'counted_to_the_end', _own_before < 1000 and _inside.entities < 1000 and _outside.entities < 1000);
end $tenantry$;

-- The same where the order of arrival rules.
create function :schema.why_turns_fifo_v1(_job :schema.job, _kinds text[]) returns jsonb
language sql
as $tenantry$
  select jsonb_build_object('own_before', count(*) filter (where earlier.tenant = _job.tenant),
    'tenants_before', count(distinct earlier.tenant) filter (where earlier.tenant <> _job.tenant), 'jobs_before', count(*),
    'counted_to_the_end', count(*) < 1000)
  from (
    select head.tenant from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select job.tenant from :schema.job
      where job.queue = _job.queue and job.kind = wanted.kind and job.state = 'available' and job.attempt >= 0
        and (job.order_at, job.id) < (_job.order_at, _job.id)
      limit 1000
    ) as head
    limit 1000
  ) as earlier
$tenantry$;

-- And in strict turns: each job of its own that comes first costs a round of all tenants that have jobs.
create function :schema.why_turns_round_robin_v1(_job :schema.job, _kinds text[]) returns jsonb
language sql
as $tenantry$
  select jsonb_build_object('own_before', own.before, 'tenants_before', count(*) filter (where other.earlier or own.before > 0),
    'jobs_before', own.before * (1 + count(other.tenant)) + count(*) filter (where other.earlier),
    'counted_to_the_end', own.before < 1000 and count(other.tenant) < 1000)
  from (select :schema.why_own_before_v1(_job, _kinds) as before) as own
  left join (
    select schedule.tenant,
           (schedule.last_served_at, schedule.tenant) < (coalesce(mine.last_served_at, '-infinity'), _job.tenant) as earlier
    from (select from (values (1)) as one) as one
    left join :schema.tenant_schedule as mine on mine.queue = _job.queue and mine.tenant = _job.tenant
    cross join lateral (
      select served.tenant, served.last_served_at from :schema.tenant_schedule as served
      where served.queue = _job.queue and served.tenant <> _job.tenant limit 1000
    ) as schedule
    where exists (
      select from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select from :schema.job
        where job.queue = _job.queue and job.kind = wanted.kind and job.tenant = schedule.tenant and job.state = 'available' limit 1
      ) as waiting)
  ) as other on true
  group by own.before
$tenantry$;

-- What pauses a job, limits of 0 included: the queue, its kind, its tenant, its key.
create function :schema.why_paused_v1(
  _job :schema.job, _settings :schema.queue, _kind :schema.kind, _tenant :schema.tenant, out rule text, out detail jsonb
)
language plpgsql
as $tenantry$
declare
  _key_limit integer;
  _since timestamptz;
begin
  if _settings.paused_at is not null then
    rule := 'queue_paused';
    _since := _settings.paused_at;
  elsif _settings.concurrency = 0 then
    rule := 'queue_limit';
  elsif _kind.paused_at is not null then
    rule := 'kind_paused';
    _since := _kind.paused_at;
  elsif _kind.concurrency = 0 then
    rule := 'kind_limit';
  elsif _tenant.paused_at is not null then
    rule := 'tenant_paused';
    _since := _tenant.paused_at;
  elsif coalesce(_tenant.concurrency, _settings.tenant_concurrency) = 0 then
    rule := 'tenant_limit';
  elsif _job.key is not null and _job.state <> 'available' then
    select key.concurrency into _key_limit from :schema.key where key.queue = _job.queue and key.key = _job.key;
    if coalesce(_key_limit, _settings.key_concurrency) = 0 then
      rule := 'key_limit';
      detail := (:schema.why_key_v1(_job, _settings)).detail;
      return;
    end if;
  end if;
  if rule like '%paused' then
    detail := jsonb_build_object('since', _since, 'since_ms', round(extract(epoch from clock_timestamp() - _since) * 1000));
  elsif rule is not null then
    detail := jsonb_build_object('limit', 0, 'running', 0, 'oldest', '[]'::jsonb);
  end if;
  if rule = 'tenant_limit' then
    detail := detail || jsonb_build_object('own', _tenant.concurrency is not null);
  end if;
end $tenantry$;

-- Which limit or rate above the key binds.
create function :schema.why_limited_v1(
  _job :schema.job, _settings :schema.queue, _kind :schema.kind, _tenant :schema.tenant, out rule text, out detail jsonb
)
language plpgsql
as $tenantry$
begin
  rule := 'queue_limit';
  detail := :schema.why_limit_v1(_job.queue, null, null, _settings.concurrency);
  if detail is not null then return; end if;
  rule := 'kind_limit';
  detail := :schema.why_limit_v1(_job.queue, null, _job.kind, _kind.concurrency);
  if detail is not null then return; end if;
  rule := 'tenant_limit';
  detail := :schema.why_limit_v1(_job.queue, _job.tenant, null, coalesce(_tenant.concurrency, _settings.tenant_concurrency))
    || jsonb_build_object('own', _tenant.concurrency is not null);
  if detail is not null then return; end if;
  rule := 'queue_rate';
  detail := :schema.why_rate_v1(_job.queue, 'queue', '', _settings.rate_per_second, _settings.burst, 0);
  if detail is not null then return; end if;
  rule := 'kind_rate';
  detail := :schema.why_rate_v1(_job.queue, 'kind', _job.kind, _kind.rate_per_second, _kind.burst, 0);
  if detail is not null then return; end if;
  rule := 'tenant_rate';
  detail := :schema.why_rate_v1(_job.queue, 'tenant', _job.tenant,
      coalesce(_tenant.rate_per_second, _settings.tenant_rate_per_second), coalesce(_tenant.burst, _settings.tenant_burst), 0)
    || jsonb_build_object('own', _tenant.rate_per_second is not null);
  if detail is not null then return; end if;
  rule := null;
end $tenantry$;

-- The rule that binds a job that is due: the whole order of precedence.
create function :schema.why_due_v1(_job :schema.job, out rule text, out detail jsonb)
language plpgsql
as $tenantry$
declare
  _settings :schema.queue;
  _kind :schema.kind;
  _tenant :schema.tenant;
  _strategy text;
  _workers record;
  _found record;
  _turns jsonb;
begin
  detail := :schema.why_table_lock_v1();
  if detail is not null then
    rule := 'table_locked';
    return;
  end if;
  select queue.* into _settings from :schema.queue where queue.name = _job.queue;
  _strategy := coalesce(_settings.strategy, 'fair');
  -- Other strategies know no settings of tenants and kinds.
  if _strategy = 'fair' then
    select kind.* into _kind from :schema.kind where kind.queue = _job.queue and kind.kind = _job.kind;
    select tenant.* into _tenant from :schema.tenant where tenant.queue = _job.queue and tenant.tenant = _job.tenant;
  end if;

  -- 1. What only somebody can end.
  select paused.* into _found from :schema.why_paused_v1(_job, _settings, _kind, _tenant) as paused;
  if _found.rule is not null then
    rule := _found.rule;
    detail := _found.detail;
    return;
  end if;
  select present.* into _workers from :schema.why_workers_v1(_job.queue, _job.kind) as present;
  if _workers.able = 0 then
    rule := 'no_worker';
    detail := jsonb_build_object('workers', _workers.workers, 'known_kinds', _workers.known_kinds, 'last_seen_at', _workers.last_seen_at);
    return;
  end if;
  if _strategy <> 'fifo' or _settings.governed then
    detail := :schema.why_queue_lock_v1(_job.queue);
    if detail is not null then
      rule := 'queue_locked';
      detail := jsonb_build_object('holders', jsonb_build_array(detail));
      return;
    end if;
  end if;
  detail := :schema.why_row_lock_v1(_job.id);
  if detail is not null then
    rule := 'row_locked';
    detail := jsonb_build_object('holders', detail);
    return;
  end if;

  -- 2. What ends by itself.
  if _job.key is not null and _job.state <> 'available' then
    select held.* into _found from :schema.why_key_v1(_job, _settings) as held;
    if _found.rule is not null then
      rule := _found.rule;
      detail := _found.detail;
      return;
    end if;
  end if;
  select limited.* into _found from :schema.why_limited_v1(_job, _settings, _kind, _tenant) as limited;
  if _found.rule is not null then
    rule := _found.rule;
    detail := _found.detail;
    return;
  end if;
  _turns := case _strategy
    when 'fair' then :schema.why_turns_fair_v1(_job, _settings, _workers.kinds)
    when 'fifo' then :schema.why_turns_fifo_v1(_job, _workers.kinds)
    else :schema.why_turns_round_robin_v1(_job, _workers.kinds)
  end;
  detail := _turns || jsonb_build_object('strategy', _strategy, 'workers', _workers.able, 'slots', _workers.slots, 'busy', _workers.busy);
  rule := case
    when _workers.busy >= _workers.slots then 'slots_busy'
    when (_turns ->> 'jobs_before')::double precision > 0 then 'turns'
    else 'next'
  end;
end $tenantry$;

-- What every answer says of the job that it is about.
create function :schema.why_facts_v1(_job :schema.job) returns jsonb
language sql
as $tenantry$
  select jsonb_build_object('job', _job.id::text, 'queue', _job.queue, 'kind', _job.kind, 'tenant', _job.tenant, 'key', _job.key,
    'priority', _job.priority, 'attempt', _job.attempt, 'max_attempts', _job.max_attempts,
    'waiting_ms', case when _job.state <> 'running' then greatest(0, round(extract(epoch from clock_timestamp() - _job.run_at) * 1000)) end)
$tenantry$;

-- A job that is not due yet.
create function :schema.why_scheduled_v1(_job :schema.job) returns jsonb
language sql
as $tenantry$
  select jsonb_build_object('run_at', _job.run_at, 'due_ms', ceil(extract(epoch from _job.run_at - clock_timestamp()) * 1000),
    'ran_before', _job.claimed_at is not null, 'error', :schema.why_error_v1(_job.errors -> -1))
$tenantry$;

-- A job that runs, under which lease and for how long.
create function :schema.why_running_v1(_job :schema.job) returns jsonb
language sql
as $tenantry$
  select jsonb_build_object('claimed_at', _job.claimed_at, 'running_ms', round(extract(epoch from clock_timestamp() - _job.claimed_at) * 1000),
    'worker', lease.worker_id, 'lease_until', case when isfinite(lease.expires_at) then lease.expires_at end,
    'lease', case when lease.id is null then 'missing' when lease.expires_at < clock_timestamp() then 'expired' else 'held' end)
  from (values (1)) as one
  left join :schema.lease on lease.id = _job.lease_id
$tenantry$;

-- Why a job does not run: one row, whatever the id.
create function :schema.why_job_v1(_id bigint, out rule text, out detail jsonb)
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
  _job :schema.job;
  _found record;
begin
  detail := :schema.why_table_lock_v1();
  if detail ->> 'mode' = 'AccessExclusiveLock' then
    rule := 'table_locked';
    detail := detail || jsonb_build_object('job', _id::text);
    return;
  end if;
  select job.* into _job from :schema.job where job.id = _id;
  if not found then
    select 'finished', jsonb_build_object('job', _id::text, 'queue', history.queue, 'kind', history.kind, 'tenant', history.tenant,
             'key', history.key, 'state', history.state, 'finalized_at', history.finalized_at, 'attempt', history.attempt,
             'max_attempts', history.max_attempts, 'error', :schema.why_error_v1(history.errors -> -1))
    into rule, detail
    from :schema.job_history as history where history.id = _id
    limit 1;
    if not found then
      rule := 'unknown';
      detail := jsonb_build_object('job', _id::text);
    end if;
    return;
  end if;
  if _job.state = 'running' then
    rule := 'running';
    detail := :schema.why_running_v1(_job);
  elsif _job.state = 'scheduled' and _job.run_at > clock_timestamp() then
    rule := 'scheduled';
    detail := :schema.why_scheduled_v1(_job);
  else
    select due.* into _found from :schema.why_due_v1(_job) as due;
    rule := _found.rule;
    detail := _found.detail;
  end if;
  detail := :schema.why_facts_v1(_job) || detail;
end $tenantry$;

comment on function :schema.why_job_v1(bigint) is 'The one rule that keeps a job from running, and its facts.';

-- The first due jobs of a tenant, those that may be claimed before those that wait for their keys. Up to 10.
create function :schema.why_heads_v1(_queue text, _tenant text, _kinds text[]) returns setof :schema.job
language sql
as $tenantry$
  select (waiting.job).*
  from (
    (select 1 as place, head.job
     from unnest(_kinds) as wanted (kind)
     cross join lateral (
       select job from :schema.job
       where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'available'
       order by job.order_at, job.id
       limit 10
     ) as head)
    union all
    (select case when (due.job).key is null then 1 else 2 end, due.job
     from unnest(_kinds) as wanted (kind)
     cross join lateral (
       select job from :schema.job
       where job.queue = _queue and job.kind = wanted.kind and job.tenant = _tenant and job.state = 'scheduled' and job.run_at <= statement_timestamp()
       order by job.run_at, job.id
       limit 10
     ) as due)
    union all
    (select 2, blocked.job
     from (
       select job from :schema.job
       where job.queue = _queue and job.tenant = _tenant and job.state = 'blocked' and job.attempt >= 0
       limit 1000
     ) as blocked
     where (blocked.job).kind = any (_kinds))
  ) as waiting
  order by waiting.place, (waiting.job).order_at, (waiting.job).id
  limit 10
$tenantry$;

-- The kinds of a queue of which there are jobs that wait, and those of a tenant that wait for their keys. Up to 1,000 of each.
create function :schema.why_kinds_v1(_queue text, _tenant text) returns text[]
language sql
as $tenantry$
  with recursive available as (
    (select job.kind from :schema.job where job.queue = _queue and job.state = 'available' order by job.kind limit 1)
    union all
    select next.kind from available cross join lateral (
      select job.kind from :schema.job where job.queue = _queue and job.state = 'available' and job.kind > available.kind order by job.kind limit 1
    ) as next
  ),
  scheduled as (
    (select job.kind from :schema.job where job.queue = _queue and job.state = 'scheduled' order by job.kind limit 1)
    union all
    select next.kind from scheduled cross join lateral (
      select job.kind from :schema.job where job.queue = _queue and job.state = 'scheduled' and job.kind > scheduled.kind order by job.kind limit 1
    ) as next
  )
  select array(
    select kind from (select kind from available limit 1000) as counted
    union
    select kind from (select kind from scheduled limit 1000) as counted
    union
    select blocked.kind from (
      select job.kind from :schema.job
      where job.queue = _queue and job.tenant = _tenant and job.state = 'blocked' and job.attempt >= 0
      limit 1000
    ) as blocked)
$tenantry$;

-- Why the next job of a tenant does not run, of any kind or of one.
create function :schema.why_tenant_v1(_queue text, _tenant text, _kind text default null, out rule text, out detail jsonb)
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
  _kinds text[] := array[_kind];
  _job :schema.job;
  _head :schema.job;
  _found record;
begin
  detail := :schema.why_table_lock_v1();
  if detail ->> 'mode' = 'AccessExclusiveLock' then
    rule := 'table_locked';
    detail := detail || jsonb_build_object('queue', _queue, 'tenant', _tenant, 'kind', _kind);
    return;
  end if;
  if _kind is null then
    _kinds := :schema.why_kinds_v1(_queue, _tenant);
  end if;
  -- The first of its jobs that nobody has locked: claims step over the others.
  for _job in select head.* from :schema.why_heads_v1(_queue, _tenant, _kinds) as head loop
    if _head.id is null or :schema.why_row_lock_v1(_head.id) is not null and :schema.why_row_lock_v1(_job.id) is null then
      _head := _job;
    end if;
  end loop;
  if _head.id is not null then
    select due.* into _found from :schema.why_due_v1(_head) as due;
    rule := _found.rule;
    detail := :schema.why_facts_v1(_head) || _found.detail;
    return;
  end if;
  select job.* into _job
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    select next.* from :schema.job as next
    where next.queue = _queue and next.kind = wanted.kind and next.tenant = _tenant and next.state = 'scheduled'
    order by next.run_at, next.id
    limit 1
  ) as job
  order by job.run_at, job.id
  limit 1;
  if found then
    rule := 'scheduled';
    detail := :schema.why_facts_v1(_job) || :schema.why_scheduled_v1(_job);
    return;
  end if;
  rule := 'no_jobs';
  detail := jsonb_build_object('queue', _queue, 'tenant', _tenant, 'kind', _kind,
    'running', (select count(*) from (
      select from :schema.running_job as job
      where job.queue = _queue and job.tenant = _tenant and (_kind is null or job.kind = _kind) limit 1000) as counted),
    'oldest', coalesce(:schema.why_oldest_v1(_queue, _tenant, _kind), '[]'));
end $tenantry$;

comment on function :schema.why_tenant_v1(text, text, text) is 'The one rule that keeps the next job of a tenant from running, and its facts.';
