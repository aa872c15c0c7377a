-- breaking: no
-- Limits on what runs at once, rates, and pauses, of queues, kinds and tenants. (Of keys: 0008_keys.sql.)
--
-- Problem.    Exact limits while many workers claim, without a counter that could leak; and a tenant at its limit must cost a
--             claim nothing, however large its backlog and however many such tenants there are.
-- Naive.      Count in the statement that claims: it does not see the other worker's uncommitted claim (a limit of 2 ran 4).
--             Or pass over the jobs of such tenants, and read their backlogs at every claim.
-- Here.       What runs is counted, by way of the leases, in a statement that starts once the queue's lock is held. A kind or queue without
--             room is left out of the claim; a tenant without room is parked: its lanes leave the order of the ring until a notice
--             says that a slot is free or a setting has changed, or until it has a token again.
-- Rates.      A token bucket as one time stamp (the generic cell rate algorithm, ITU-T I.371): the bucket lacks
--             (full_at - now) * rate tokens. A job that starts takes one. So in any window of t seconds at most burst + t * rate start.
-- Invariants. (L1) When a claim commits, no queue, kind or tenant runs more than its limit, unless it did before and started none.
--             (L2) No claim starts a job for which a bucket has no token.

-- Whole tokens in a bucket; as good as unlimited where there is no rate.
create function :schema.tokens_v1(_full_at timestamptz, _now timestamptz, _rate double precision, _burst integer) returns integer
language sql immutable
as $tenantry$
  select case when _rate is null then 1000000000
              else greatest(0, floor(_burst - greatest(0, coalesce(extract(epoch from _full_at - _now)::double precision, 0)) * _rate + 1e-9))::integer end
$tenantry$;

-- When an empty bucket will be full. Stable, since adding to a time is, in PostgreSQL's eyes: were it called immutable, it would not
-- be inlined, and cost 50 µs a statement. So are its neighbours.
create function :schema.empty_at_v1(_now timestamptz, _rate double precision, _burst integer) returns timestamptz
language sql stable
as $tenantry$
  select _now + _burst / _rate * interval '1 second'
$tenantry$;

-- Makes the buckets empty, where they are more than that: after a rate was raised, or a burst lowered, what was taken before would
-- be filled up at the new rate for as long as at the old one. A tenant with one job a day would wait for the rest of the day.
create function :schema.empty_v1(_queue text, _scope text, _names text[], _empty_ats timestamptz[]) returns void
language plpgsql
as $tenantry$
begin
  update :schema.bucket
  set full_at = given.empty_at
  from unnest(_names, _empty_ats) as given (name, empty_at)
  -- Some more is left to rounding.
  where bucket.queue = _queue and bucket.scope = _scope and bucket.name = given.name and bucket.full_at > given.empty_at + interval '10 milliseconds';
end $tenantry$;

-- When the bucket will be full after this many tokens more are taken. Rounded up to the microsecond, so that no rate is exceeded.
create function :schema.full_at_v1(_full_at timestamptz, _now timestamptz, _rate double precision, _jobs integer) returns timestamptz
language sql stable
as $tenantry$
  select greatest(_now, _full_at) + ceil(1e6 * _jobs / _rate - 1e-6) * interval '1 microsecond'
$tenantry$;

-- How many jobs a claim may take of the queue, and of which kinds how many (null: any number). rated: a bucket must be debited;
-- bound: tenants have limits; keys_rated: keys have rates; timed: time is charged; next_at: when a bucket that had too few tokens has one more.
create function :schema.caps_v1(
  _queue text, _kinds text[], _count integer, _now timestamptz,
  out kinds text[], out rooms integer[], out room integer, out rated boolean, out bound boolean, out timed boolean,
  out keys_rated boolean, out next_at timestamptz
)
language plpgsql
as $tenantry$
declare
  _settings :schema.queue;
  _full_at timestamptz;
  _tokens integer;
  _overdrawn text[];
  _empty_ats timestamptz[];
begin
  kinds := _kinds;
  room := _count;
  rated := false;
  select queue.* into _settings from :schema.queue where queue.name = _queue;
  bound := num_nonnulls(_settings.tenant_concurrency, _settings.tenant_rate_per_second) > 0 or exists (
    select from :schema.tenant
    where tenant.queue = _queue and (tenant.paused_at is not null or tenant.concurrency is not null or tenant.rate_per_second is not null)
  );
  keys_rated := _settings.key_rate_per_second is not null
    or exists (select from :schema.key where key.queue = _queue and key.rate_per_second is not null);
  timed := coalesce(_settings.charge = 'time', false);
  if _settings.paused_at is not null then
    room := 0;
    return;
  end if;
  if _settings.concurrency is not null then
    select greatest(0, least(room, _settings.concurrency - count(*))) into room
    from (
      select from :schema.running_job as job where job.queue = _queue limit _settings.concurrency
    ) as running;
  end if;
  if _settings.rate_per_second is not null then
    rated := true;
    select bucket.full_at into _full_at from :schema.bucket where bucket.queue = _queue and bucket.scope = 'queue' and bucket.name = '';
    _tokens := :schema.tokens_v1(_full_at, _now, _settings.rate_per_second, _settings.burst);
    room := least(room, _tokens);
    if _tokens < _count then
      next_at := :schema.token_at_v1(_full_at, _now, _settings.rate_per_second, _settings.burst, _tokens + 1);
    end if;
    if _full_at > :schema.empty_at_v1(_now, _settings.rate_per_second, _settings.burst) then
      perform :schema.empty_v1(_queue, 'queue', array[''], array[:schema.empty_at_v1(_now, _settings.rate_per_second, _settings.burst)]);
    end if;
  end if;
  if not exists (select from :schema.kind where kind.queue = _queue) then
    return;
  end if;

  select array_agg(capped.kind) filter (where capped.room is null or capped.room > 0),
         array_agg(capped.room) filter (where capped.room is null or capped.room > 0),
         rated or coalesce(bool_or(capped.rate_per_second is not null), false),
         least(next_at, min(:schema.token_at_v1(capped.full_at, _now, capped.rate_per_second, capped.burst, capped.tokens + 1))
           filter (where capped.paused_at is null and capped.tokens < _count)),
         array_agg(capped.kind) filter (where capped.full_at > capped.empty_at),
         array_agg(capped.empty_at) filter (where capped.full_at > capped.empty_at)
  into kinds, rooms, rated, next_at, _overdrawn, _empty_ats
  from (
    select wanted.kind, kind.paused_at, kind.rate_per_second, kind.burst, bucket.full_at,
           :schema.empty_at_v1(_now, kind.rate_per_second, kind.burst) as empty_at,
           case when kind.rate_per_second is not null
                then :schema.tokens_v1(bucket.full_at, _now, kind.rate_per_second, kind.burst) end as tokens,
           case when kind.paused_at is not null then 0
                else least(kind.concurrency - running.jobs,
                       case when kind.rate_per_second is not null
                            then :schema.tokens_v1(bucket.full_at, _now, kind.rate_per_second, kind.burst) end) end as room
    from unnest(_kinds) as wanted (kind)
    left join :schema.kind on kind.queue = _queue and kind.kind = wanted.kind
    left join lateral (
      select bucket.full_at from :schema.bucket where bucket.queue = _queue and bucket.scope = 'kind' and bucket.name = wanted.kind
      offset 0
    ) as bucket on true
    left join (
      -- All that runs in the queue, once, as many as there are busy slots.
      select job.kind, count(*)::integer as jobs from :schema.running_job as job
      where job.queue = _queue
        and exists (select from :schema.kind as limited where limited.queue = _queue and limited.kind = any (_kinds) and limited.concurrency is not null)
      group by job.kind
    ) as counted on counted.kind = wanted.kind
    cross join lateral (select coalesce(counted.jobs, 0) as jobs) as running
  ) as capped;
  if _overdrawn is not null then
    perform :schema.empty_v1(_queue, 'kind', _overdrawn, _empty_ats);
  end if;
  kinds := coalesce(kinds, '{}');
end $tenantry$;

-- When the bucket will hold this many tokens.
create function :schema.token_at_v1(_full_at timestamptz, _now timestamptz, _rate double precision, _burst integer, _tokens integer) returns timestamptz
language sql stable
as $tenantry$
  select greatest(_now, least(coalesce(_full_at, _now), :schema.empty_at_v1(_now, _rate, _burst)) - greatest(0, _burst - _tokens) / _rate * interval '1 second')
$tenantry$;

-- What each of these tenants may start now. Null where nothing limits it; where 0, until when: infinity for a slot or a resume.
create function :schema.rooms_v1(
  _queue text, _tenants text[], _now timestamptz, out rooms integer[], out untils timestamptz[], out rated boolean
)
language plpgsql
as $tenantry$
declare
  _overdrawn text[];
  _empty_ats timestamptz[];
begin
  with wanted as materialized (
    select given.name, given.place, own.paused_at, limits.*, used.full_at,
           case when limits.rate is not null then :schema.tokens_v1(used.full_at, _now, limits.rate, limits.burst) end as tokens
    from unnest(_tenants) with ordinality as given (name, place)
    left join :schema.queue on queue.name = _queue
    -- One probe for each: joined, all tenants of the queue may be read instead.
    left join lateral (
      select tenant.* from :schema.tenant where tenant.queue = _queue and tenant.tenant = given.name
      offset 0
    ) as own on true
    left join lateral (
      select bucket.full_at from :schema.bucket where bucket.queue = _queue and bucket.scope = 'tenant' and bucket.name = given.name
      offset 0
    ) as used on true
    cross join lateral (
      select coalesce(own.concurrency, queue.tenant_concurrency) as concurrency,
             coalesce(own.rate_per_second, queue.tenant_rate_per_second) as rate,
             case when own.rate_per_second is not null then own.burst else queue.tenant_burst end as burst
    ) as limits
  ),
  counted as materialized (
    -- All that runs in the queue, once and not for each of the tenants.
    select job.tenant, count(*)::integer as jobs from :schema.running_job as job
    where job.queue = _queue and job.tenant = any (_tenants)
      and exists (select from wanted where wanted.concurrency is not null and wanted.paused_at is null)
    group by job.tenant
  )
  select array_agg(tenant.room order by tenant.place),
         array_agg(case when tenant.room = 0 then case when tenant.waits_for_token then tenant.token_at else 'infinity' end end order by tenant.place),
         bool_or(tenant.rate is not null),
         array_agg(tenant.name) filter (where tenant.full_at > tenant.empty_at),
         array_agg(tenant.empty_at) filter (where tenant.full_at > tenant.empty_at)
  into rooms, untils, rated, _overdrawn, _empty_ats
  from (
    select wanted.place, wanted.name, wanted.rate, wanted.full_at, :schema.empty_at_v1(_now, wanted.rate, wanted.burst) as empty_at,
           case when wanted.paused_at is not null then 0
                when wanted.concurrency is null and wanted.rate is null then null
                else greatest(0, least(wanted.concurrency - coalesce(counted.jobs, 0), wanted.tokens)) end as room,
           -- Where both bind, the slot: its notice comes when it is free, and the tokens have come meanwhile or are waited for then.
           wanted.paused_at is null and wanted.tokens = 0 as waits_for_token,
           :schema.token_at_v1(wanted.full_at, _now, wanted.rate, wanted.burst, 1) as token_at
    from wanted
    left join counted on counted.tenant = wanted.name
  ) as tenant;
  if _overdrawn is not null then
    perform :schema.empty_v1(_queue, 'tenant', _overdrawn, _empty_ats);
  end if;
end $tenantry$;

-- Takes tokens for the jobs that were just claimed, given by lane.
create function :schema.debit_v1(_queue text, _tenants text[], _kinds text[], _jobs integer[], _now timestamptz) returns void
language plpgsql
as $tenantry$
begin
  insert into :schema.bucket as bucket (queue, scope, name, full_at)
  select _queue, used.scope, used.name, :schema.full_at_v1(null, _now, used.rate, used.jobs)
  from (
    select 'queue' as scope, '' as name, queue.rate_per_second as rate, (select sum(given.jobs) from unnest(_jobs) as given (jobs))::integer as jobs
    from :schema.queue
    where queue.name = _queue and queue.rate_per_second is not null
    union all
    select 'kind', served.kind, kind.rate_per_second, served.jobs
    from (select given.kind, sum(given.jobs)::integer as jobs from unnest(_kinds, _jobs) as given (kind, jobs) group by given.kind) as served
    join :schema.kind on kind.queue = _queue and kind.kind = served.kind
    where kind.rate_per_second is not null
    union all
    select 'tenant', served.tenant, coalesce(tenant.rate_per_second, queue.tenant_rate_per_second), served.jobs
    from (select given.tenant, sum(given.jobs)::integer as jobs from unnest(_tenants, _jobs) as given (tenant, jobs) group by given.tenant) as served
    left join :schema.queue on queue.name = _queue
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = served.tenant
    where coalesce(tenant.rate_per_second, queue.tenant_rate_per_second) is not null
  ) as used
  where used.jobs > 0
  on conflict (queue, scope, name) do update set full_at = greatest(bucket.full_at, _now) + (excluded.full_at - _now);
end $tenantry$;

-- Takes the lanes of tenants out of the order of the ring, whatever their kinds, until the times given.
create function :schema.park_v1(_queue text, _tenants text[], _untils timestamptz[], _now timestamptz) returns void
language plpgsql
as $tenantry$
begin
  update :schema.ring
  set ready = false, parked_at = _now, parked_until = _untils[array_position(_tenants, ring.tenant)]
  where ring.ctid = any (array(
    select lane.ctid
    from unnest(_tenants) as parked (tenant)
    cross join lateral (
      select own.ctid, own.ready from :schema.ring as own
      where own.queue = _queue and own.tenant = parked.tenant
      offset 0
    ) as lane
    where lane.ready
  ));
end $tenantry$;

-- Parks those of the next tenants in the order of the ring that may start nothing now: of up to _lanes lanes of each kind, among the
-- tenants without a group, and in each of the next 16 groups.
create function :schema.park_ahead_v1(_queue text, _kinds text[], _lanes integer, _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _groups text[];
  _tenants text[];
  _room record;
begin
  _groups := array(
    select distinct node.grp
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select group_ring.grp from :schema.group_ring
      where group_ring.queue = _queue and group_ring.kind = wanted.kind and group_ring.ready
      order by group_ring.pass, group_ring.grp
      limit 16
    ) as node
  );
  _tenants := array(
    select distinct lane.tenant
    from unnest(''::text || _groups) as parent (grp)
    cross join unnest(_kinds) as wanted (kind)
    cross join lateral (
      select ring.tenant from :schema.ring
      where ring.queue = _queue and ring.grp = parent.grp and ring.kind = wanted.kind and ring.ready
      order by ring.pass, ring.tenant
      limit _lanes
    ) as lane
  );
  if cardinality(_tenants) = 0 then
    return;
  end if;
  _room := :schema.rooms_v1(_queue, _tenants, _now);
  perform :schema.park_v1(_queue,
    array(select given.tenant from unnest(_tenants, _room.untils) as given (tenant, until) where given.until is not null),
    array_remove(_room.untils, null), _now);
  if cardinality(_groups) > 0 then
    perform :schema.refresh_groups_v1(_queue, _kinds, _groups);
  end if;
end $tenantry$;

-- What to look at again when a limit for all tenants has changed: 64 of the tenants with parked lanes, and each of the next claims at
-- 64 more, as when tokens come, since a claim that found all of them still at their limits would park them one after another. Where
-- no limit is left, all.
create function :schema.look_again_v1(_queue text) returns text[]
language plpgsql
as $tenantry$
declare
  _caps record;
begin
  _caps := :schema.caps_v1(_queue, '{}', 1, clock_timestamp());
  if _caps.bound then
    update :schema.ring set parked_until = clock_timestamp()
    where ring.queue = _queue and ring.parked_until is not null;
    return array(
      select ring.tenant from :schema.ring
      where ring.queue = _queue and ring.parked_until <= clock_timestamp()
      group by ring.tenant
      order by min(ring.pass), ring.tenant
      limit 64
    );
  end if;
  return array(select distinct ring.tenant from :schema.ring where ring.queue = _queue and ring.parked_until is not null);
end $tenantry$;

-- Brings the parked lanes of these tenants ('' for all) back into the order of the ring, for a claim to look at their limits again,
-- and lanes whose tenant has changed its group into that of the new one. No credit for having waited: a lane begins at its own
-- pass, or where those that wait do.
create function :schema.unpark_v1(_queue text, _kinds text[], _tenants text[]) returns void
language plpgsql
as $tenantry$
declare
  _groups text[];
begin
  if '' = any (_tenants) then
    _tenants := array_remove(_tenants, '') || :schema.look_again_v1(_queue);
  end if;
  with moved as (
    select lane.ctid, lane.kind, lane.grp as old_grp, coalesce(tenant.grp, '') as new_grp
    from (
      select own.ctid, own.tenant, own.kind, own.grp, own.parked_until
      from unnest(_tenants) as noticed (name)
      cross join lateral (
        select ring.ctid, ring.* from :schema.ring where ring.queue = _queue and ring.tenant = noticed.name
        offset 0
      ) as own
    ) as lane
    left join :schema.tenant on tenant.queue = _queue and tenant.tenant = lane.tenant
    where lane.parked_until is not null or lane.grp <> coalesce(tenant.grp, '')
  ),
  place as materialized (
    select distinct_place.kind, distinct_place.grp, :schema.floor_v1(_queue, distinct_place.grp, distinct_place.kind, _kinds) as floor
    from (select distinct moved.kind, moved.new_grp as grp from moved) as distinct_place
  ),
  changed as (
    update :schema.ring
    set ready = ring.ready or ring.parked_until is not null,
        entered_at = case when ring.parked_until is not null then clock_timestamp() else ring.entered_at end,
        parked_at = null, parked_until = null, grp = lane.new_grp,
        pass = case when lane.old_grp <> lane.new_grp then lane.floor else greatest(ring.pass, lane.floor) end
    from (
      select moved.ctid, moved.old_grp, moved.new_grp, place.floor
      from moved
      join place on place.grp = moved.new_grp and place.kind = moved.kind
    ) as lane
    where ring.ctid = lane.ctid
    returning lane.old_grp, lane.new_grp
  )
  select array(select changed.old_grp from changed where changed.old_grp <> ''
               union select changed.new_grp from changed where changed.new_grp <> '')
  into _groups;
  if cardinality(_groups) > 0 then
    perform :schema.refresh_groups_v1(_queue, _kinds, _groups);
  end if;
end $tenantry$;

-- Brings back the lanes whose tenants have a token again, up to 64 of each kind.
create function :schema.unpark_due_v1(_queue text, _kinds text[], _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _tenants text[];
begin
  _tenants := array(
    select lane.tenant
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select ring.tenant from :schema.ring
      where ring.queue = _queue and ring.kind = wanted.kind and ring.parked_until <= _now and ring.parked_until < 'infinity'
      order by ring.parked_until
      limit 64
    ) as lane
  );
  if cardinality(_tenants) > 0 then
    perform :schema.unpark_v1(_queue, _kinds, _tenants);
  end if;
end $tenantry$;

-- Looks at the tenants that wait for a slot or a resume, those first that were parked or looked at longest ago, at least 5 s, up to 256
-- lanes of each kind: should a notice be missing, this is how it is found. Only tenants that may start something come back, for to
-- let each claim try one would cost it more than it brings, the more the more of them there are.
create function :schema.look_at_parked_v1(_queue text, _kinds text[], _now timestamptz) returns void
language plpgsql
as $tenantry$
declare
  _tenants text[];
  _room record;
  _freed text[];
begin
  _tenants := array(
    select distinct lane.tenant
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select ring.tenant from :schema.ring
      where ring.queue = _queue and ring.kind = wanted.kind and ring.parked_until = 'infinity' and ring.parked_at < _now - interval '5 seconds'
      order by ring.parked_at
      limit 256
    ) as lane
  );
  if cardinality(_tenants) = 0 then
    return;
  end if;
  _room := :schema.rooms_v1(_queue, _tenants, _now);
  _freed := array(
    select given.tenant from unnest(_tenants, _room.rooms) as given (tenant, room) where given.room is null or given.room > 0
  );
  update :schema.ring
  set parked_at = _now, parked_until = coalesce(_room.untils[array_position(_tenants, ring.tenant)], 'infinity')
  where ring.ctid = any (array(
    select lane.ctid
    from unnest(_tenants) as looked_at (tenant)
    cross join lateral (
      select own.ctid, own.parked_until from :schema.ring as own
      where own.queue = _queue and own.tenant = looked_at.tenant
      offset 0
    ) as lane
    where lane.parked_until = 'infinity'
  ));
  if cardinality(_freed) > 0 then
    perform :schema.unpark_v1(_queue, _kinds, _freed);
  end if;
end $tenantry$;

-- Lifts the lanes and nodes of kinds that were paused to where the others are now, for while these were served, they stood still.
create function :schema.lift_v1(_queue text, _kinds text[], _lifted text[]) returns void
language plpgsql
as $tenantry$
begin
  update :schema.ring
  set pass = place.floor
  from (
    select lane.ctid, min(other.pass) as floor
    from (select ring.ctid, ring.* from :schema.ring where ring.queue = _queue and ring.kind = any (_lifted) and ring.ready) as lane
    cross join lateral (
      select head.pass
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select ring.pass from :schema.ring
        where ring.queue = _queue and ring.grp = lane.grp and ring.kind = wanted.kind and ring.ready
        order by ring.pass limit 1
      ) as head
      where wanted.kind <> all (_lifted)
    ) as other
    group by lane.ctid
  ) as place
  where ring.ctid = place.ctid and ring.pass < place.floor;
  update :schema.group_ring as node
  set pass = greatest(node.pass, (
    select min(head.pass)
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select other.pass from :schema.group_ring as other
      where other.queue = _queue and other.kind = wanted.kind and other.ready
      order by other.pass limit 1
    ) as head
    where wanted.kind <> all (_lifted)
  ))
  where node.queue = _queue and node.kind = any (_lifted) and node.ready;
end $tenantry$;

-- What keeps a claim that was not filled from more: whether limits do, and in how many milliseconds a token comes.
create function :schema.held_back_v1(_queue text, _kinds text[], _count integer, out held_back boolean, out next_ms double precision)
language plpgsql
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _next_at timestamptz;
begin
  select caps.room < _count or cardinality(caps.kinds) < cardinality(_kinds) or cardinality(array_remove(caps.rooms, null)) > 0,
         caps.next_at
  into held_back, _next_at
  from :schema.caps_v1(_queue, _kinds, _count, _now) as caps;
  -- What has come already is no news, and would hide what is still to come.
  select coalesce(held_back, false) or coalesce(bool_or(parked.is_parked), false), least(_next_at, min(parked.until))
  into held_back, _next_at
  from unnest(_kinds) as wanted (kind)
  cross join lateral (
    (select true as is_parked, null::timestamptz as until from :schema.ring
     where ring.queue = _queue and ring.kind = wanted.kind and ring.parked_until < 'infinity'
     order by ring.parked_until limit 1)
    union all
    (select true, ring.parked_until from :schema.ring
     where ring.queue = _queue and ring.kind = wanted.kind and ring.parked_until < 'infinity' and ring.parked_until > _now
     order by ring.parked_until limit 1)
    union all
    (select true, null from :schema.ring
     where ring.queue = _queue and ring.kind = wanted.kind and ring.parked_until = 'infinity'
     order by ring.parked_at limit 1)
  ) as parked;
  select least(_next_at, min(timer.due_at)) into _next_at from :schema.key_timer as timer where timer.queue = _queue and timer.due_at > _now;
  if _next_at is not null then
    next_ms := greatest(0, extract(epoch from _next_at - _now) * 1000);
  end if;
end $tenantry$;
