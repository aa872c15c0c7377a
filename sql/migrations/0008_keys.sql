-- breaking: no
-- Keys: at most so many jobs of a key at once, or per second, across tenants and kinds; with a limit of one, strictly in order.
--
-- Problem.    A lane whose first jobs all have a key that is used up would have to be looked through at every claim.
-- Here.       A due job with a key is `blocked`, which the claim index does not hold, until a claim admits it: makes it available.
--             A key is looked at when a notice says so, since an enqueue, a settling and a change of its limit each leave one,
--             and when the walk along the keys comes by.
-- Invariants. (K1) Under the queue's lock no job is admitted unless the available and running jobs of its key are fewer than its
--             limit. (K2) Nor unless the available ones are fewer than its tokens: so one that is available may be claimed at
--             once, and starts never exceed the rate. (K3) With a limit of one, no job is admitted while one that comes before
--             it in the order of the key waits for its retry, or is held by somebody else.

-- Admits jobs of these keys, and tells the lanes. Where a limit was lowered, takes back the admission of those that are too many.
create function :schema.admit_v1(_queue text, _keys text[]) returns void
language plpgsql
as $tenantry$
declare
  -- As parameters, for of the indexes only job_key serves states that are not known beforehand: with stale statistics another one,
  -- that of what is available, say, was read from end to end.
  _is_available :schema.job_state := 'available';
  _is_running :schema.job_state := 'running';
  _is_scheduled :schema.job_state := 'scheduled';
  -- Not later than the time that the claim notes for the jobs that it starts, or a token would be used before it has come.
  _now timestamptz := statement_timestamp();
  _settings :schema.queue;
  _known text[];
  _strict boolean[];
  _available integer[];
  _targets integer[];
  _ids bigint[];
  _taken_back integer;
  _overdrawn text[];
  _empty_ats timestamptz[];
  _kinds text[];
  _tenants text[];
  _order_ats timestamptz[];
begin
  select queue.* into _settings from :schema.queue where queue.name = _queue;
  select array_agg(wanted.key), array_agg(wanted.slots = 1), array_agg(use.available),
         array_agg(greatest(0, least(wanted.slots - use.running, wanted.tokens))),
         array_agg(wanted.key) filter (where wanted.full_at > wanted.empty_at), array_agg(wanted.empty_at) filter (where wanted.full_at > wanted.empty_at)
  into _known, _strict, _available, _targets, _overdrawn, _empty_ats
  from (
    select given.key, coalesce(own.concurrency, _settings.key_concurrency, 1) as slots, used.full_at,
           :schema.tokens_v1(used.full_at, _now, coalesce(own.rate_per_second, _settings.key_rate_per_second),
             coalesce(own.burst, _settings.key_burst)) as tokens,
           -- By the clock: this statement may have waited for the lock, and a bucket that was emptied meanwhile is not overdrawn.
           :schema.empty_at_v1(clock_timestamp(), coalesce(own.rate_per_second, _settings.key_rate_per_second), coalesce(own.burst, _settings.key_burst)) as empty_at
    from unnest(_keys) as given (key)
    -- One probe for each: joined, all keys of the queue may be read instead.
    left join lateral (
      select key.* from :schema.key where key.queue = _queue and key.key = given.key
      offset 0
    ) as own on true
    left join lateral (
      select bucket.full_at from :schema.bucket where bucket.queue = _queue and bucket.scope = 'key' and bucket.name = given.key
      offset 0
    ) as used on true
  ) as wanted
  cross join lateral (
    -- Running ones are counted no further than the limit.
    select (select count(*) from (
              select from :schema.job where job.queue = _queue and job.key = wanted.key and job.state = _is_available limit 10000
            ) as admitted)::integer as available,
           (select count(*) from (
              select from :schema.job where job.queue = _queue and job.key = wanted.key and job.state = _is_running limit wanted.slots
            ) as busy)::integer as running
  ) as use
  where use.available > 0 or least(wanted.slots - use.running, wanted.tokens) > 0 or wanted.tokens < 1;
  if _known is null then
    return;
  end if;
  if _overdrawn is not null then
    perform :schema.empty_v1(_queue, 'key', _overdrawn, _empty_ats);
  end if;

  -- The last of those that are too many, the first of those for which there is room. Looks without locking, so that a row that
  -- somebody holds keeps its place.
  _ids := array(
    select surplus.id
    from unnest(_known, _available, _targets) as given (key, available, target)
    cross join lateral (
      select job.id from :schema.job
      where job.queue = _queue and job.key = given.key and job.state = _is_available
      order by job.order_at desc, job.id desc
      limit greatest(0, given.available - given.target)
    ) as surplus
  );
  if cardinality(_ids) > 0 then
    update :schema.job set state = 'blocked'
    where job.id = any (array(
      select free.id from :schema.job as free where free.id = any (_ids) and free.state = 'available' for no key update skip locked
    ));
    get diagnostics _taken_back = row_count;
    if _taken_back < cardinality(_ids) then
      -- Somebody holds the others. Once they are let go, the next claim must look at them before it takes any.
      perform :schema.notice_keys_v1(array_fill(_queue, array[cardinality(_known)]), _known);
    end if;
  end if;
  _ids := array(
    select head.id
    from unnest(_known, _strict, _available, _targets) as given (key, strict, available, target)
    cross join lateral (
      select job.id, job.order_at from :schema.job
      where job.queue = _queue and job.key = given.key and job.state = 'blocked'
      order by job.order_at, job.id
      limit least(1000, greatest(0, given.target - given.available))
    ) as head
    where not given.strict or not exists (
      select from :schema.job as earlier
      where earlier.queue = _queue and earlier.key = given.key and earlier.state = _is_scheduled
        and (earlier.order_at, earlier.id) < (head.order_at, head.id) and earlier.claimed_at is not null
    )
  );
  if cardinality(_ids) > 0 then
    with admitted as (
      update :schema.job set state = 'available'
      where job.id = any (array(
        select free.id from :schema.job as free where free.id = any (_ids) and free.state = 'blocked' for no key update skip locked
      ))
      returning job.kind, job.tenant, job.order_at
    )
    select array_agg(admitted.kind), array_agg(admitted.tenant), array_agg(admitted.order_at) into _kinds, _tenants, _order_ats from admitted;
    if _kinds is not null then
      perform :schema.signal_v1(array_fill(_queue, array[cardinality(_kinds)]), _kinds, _tenants, _order_ats);
      -- They may be of kinds that only other workers know.
      perform :schema.wake_v1(array[_queue]);
    end if;
  end if;
  if _settings.governed then
    perform :schema.time_keys_v1(_queue, _known, _now);
  end if;
end $tenantry$;

-- Sets the timers of those of the keys that have a rate and jobs that wait for it.
create function :schema.time_keys_v1(_queue text, _keys text[], _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _is_available :schema.job_state := 'available'; -- See admit_v1.
  _is_blocked :schema.job_state := 'blocked';
begin
  insert into :schema.key_timer as timer (queue, key, due_at)
  select _queue, given.key,
         :schema.token_at_v1(used.full_at, _now, rated.rate, rated.burst, use.available::integer + 1)
  from unnest(_keys) as given (key)
  left join :schema.queue on queue.name = _queue
  left join lateral (
    select key.* from :schema.key where key.queue = _queue and key.key = given.key
    offset 0
  ) as own on true
  left join lateral (
    select bucket.full_at from :schema.bucket where bucket.queue = _queue and bucket.scope = 'key' and bucket.name = given.key
    offset 0
  ) as used on true
  cross join lateral (
    select coalesce(own.rate_per_second, queue.key_rate_per_second) as rate, coalesce(own.burst, queue.key_burst) as burst
  ) as rated
  cross join lateral (
    select count(*) as available from (
      select from :schema.job where job.queue = _queue and job.key = given.key and job.state = _is_available limit rated.burst
    ) as admitted
  ) as use
  -- Where there is a token, it is a slot of the key that is waited for, and a notice tells when there is one.
  where rated.rate is not null and :schema.tokens_v1(used.full_at, _now, rated.rate, rated.burst) <= use.available and use.available < rated.burst
    -- Not `exists`, which may become a join that reads all that is blocked.
    and (select job.id from :schema.job where job.queue = _queue and job.key = given.key and job.state = _is_blocked order by job.order_at, job.id limit 1) is not null
  order by given.key
  on conflict (queue, key) do update set due_at = excluded.due_at;
end $tenantry$;

-- Looks at the keys whose timers have run down, at most 256.
create function :schema.admit_due_v1(_queue text, _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _keys text[];
begin
  with due as (
    delete from :schema.key_timer
    where key_timer.ctid = any (array(
      select timer.ctid from :schema.key_timer as timer
      where timer.queue = _queue and timer.due_at <= _now
      order by timer.due_at
      limit 256
    ))
    returning key_timer.key
  )
  select array_agg(due.key) into _keys from due;
  if _keys is not null then
    perform :schema.admit_v1(_queue, _keys);
  end if;
end $tenantry$;

-- Debits the buckets of the keys of the jobs that run under this lease, and sets their timers.
create function :schema.debit_keys_v1(_queue text, _lease_id uuid, _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _keys text[];
begin
  with debited as (
    insert into :schema.bucket as bucket (queue, scope, name, full_at)
    select _queue, 'key', used.key, :schema.full_at_v1(null, _now, coalesce(own.rate_per_second, queue.key_rate_per_second), used.jobs)
    from (
      select job.key, count(*)::integer as jobs from :schema.job
      where job.lease_id = _lease_id and job.state = 'running' and job.key is not null
      group by job.key
    ) as used
    left join :schema.queue on queue.name = _queue
    left join lateral (
      select key.* from :schema.key where key.queue = _queue and key.key = used.key
      offset 0
    ) as own on true
    where coalesce(own.rate_per_second, queue.key_rate_per_second) is not null
    order by used.key
    on conflict (queue, scope, name) do update
    set full_at = greatest(bucket.full_at, _now) + (excluded.full_at - _now)
    returning bucket.name
  )
  select array_agg(debited.name) into _keys from debited;
  if _keys is not null then
    perform :schema.time_keys_v1(_queue, _keys, _now);
  end if;
end $tenantry$;

-- Walks along the keys, from where the last walk stopped or from the start, and looks at each of up to _hops.
create function :schema.walk_keys_v1(_queue text, _hops integer, _from_start boolean) returns void
language plpgsql
as $tenantry$
declare
  _from text := '';
  _keys text[];
  _came_round boolean;
begin
  if not _from_start then
    select walk.tenant into _from from :schema.walk where walk.queue = _queue and walk.kind = '';
  end if;
  with recursive hop as (
    select _from collate "C" as key
    union all
    select next.key
    from hop
    cross join lateral (
      select job.key from :schema.job
      where job.queue = _queue and job.key > hop.key and job.key is not null
      order by job.key
      limit 1
    ) as next
  )
  select array_agg(hop.key) into _keys from (select hop.key from hop limit _hops + 1) as hop;
  _came_round := cardinality(_keys) <= _hops;
  insert into :schema.walk as walk (queue, kind, tenant, walk_at)
  values (_queue, '', case when _came_round then '' else _keys[_hops + 1] end,
    -- A queue without keys is hardly looked at.
    case when not _came_round then clock_timestamp()
         when cardinality(_keys) = 1 then clock_timestamp() + interval '5 seconds'
         else clock_timestamp() + interval '250 milliseconds' end)
  on conflict (queue, kind) do update set tenant = excluded.tenant, walk_at = excluded.walk_at;
  if cardinality(_keys) > 1 then
    perform :schema.admit_v1(_queue, _keys[2:]);
  end if;
end $tenantry$;
