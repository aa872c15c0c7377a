-- breaking: no
-- The fair claim: start-time fair queueing (Goyal, Vin and Cheng, 1996) over the tenants that have work.
--
-- Problem.    The next job belongs to the ready tenant that has had the least service for its weight, exactly, while
--             many workers claim at once, and at a cost that depends neither on the backlog nor on the idle tenants.
-- Naive.      Sort the tenants by when they were last served and lock one (the first article): the cost grows with the
--             backlog, concurrent claims find every tenant locked and come back empty, and no weight is possible.
-- Here.       Each tenant has a pass: the service it has had, divided by its weight. The ring holds its lanes (tenant and
--             kind) that have work, in the order of the pass. A claim gives out turns: each turn goes to the tenant with the
--             smallest pass, takes up to a quantum of its jobs in order, and adds what it took, divided by the weight, to
--             the pass. Claims of one queue run one after the other, under the queue's lock (an advisory one). It is the first
--             thing that a claim waits for, while it holds nothing, and nobody else writes the ring: so there is no deadlock and
--             no falsely empty claim.
-- Discovery.  See 0010_discovery.sql: before the ring is used it is brought up to date, and before a claim reports that there is
--             less than was asked for it walks all the way round.
-- Kinds.      A worker may know only some kinds. Readiness is therefore kept for each lane, and a claim reads and writes nothing
--             of other kinds. Nor does service of other kinds count: pools for different kinds are servers of their own, and a
--             tenant that was served alone in one would otherwise wait behind every backlog in the other.
-- Invariants. (F1) A turn charges all ready lanes of its tenant that are of the claim's kinds alike. (F2) A claim returns fewer
--             jobs than asked for only when, at its last look, no job of its kinds was available that nobody held. (F3) A lane
--             that comes back starts at the largest pass of its tenant's lanes of these kinds and the smallest pass of the
--             lanes that wait: no credit for idling.
--
-- Each statement here costs 10 to 30 µs before it does anything, at every claim: the common case runs few and small ones.

-- Gives out turns in general: several kinds, weights, groups, tenants that are far behind. The candidates are the tenants of a
-- group or, for '', the groups and the tenants without one. Answers with how many jobs each may have, up to _wanted in all, the one
-- with the smallest pass first. _expected is what a job of each kind costs, where time is charged.
create function :schema.pick_v1(
  _queue text, _grp text, _kinds text[], _expected double precision[], _wanted integer, _quantum integer,
  out names text[], out are_groups boolean[], out weights double precision[], out shares integer[]
)
language plpgsql
as $tenantry$
declare
  -- Bounded, since as many turns of as many candidates are looked at; the claim asks again for the rest.
  _turns integer := least(64, ceil(_wanted::double precision / _quantum));
begin
  select array_agg(share.name), array_agg(share.is_group), array_agg(share.weight), array_agg(share.jobs)
  into names, are_groups, weights, shares
  from (
    -- The turn that starts last is cut to what is left of the batch.
    select turn.name, turn.is_group, turn.weight,
           (count(*) * _quantum - case when max(turn.place) = _turns then greatest(0, _turns * _quantum - _wanted) else 0 end)::integer as jobs
    from (
      -- The turns that begin at the smallest passes: a candidate far behind, or with a large weight, has several of them.
      select candidate.name, candidate.is_group, candidate.weight, candidate.pass + turn.number * candidate.step as starts_at,
             row_number() over (order by candidate.pass + turn.number * candidate.step, candidate.name, candidate.is_group) as place
      from (
        select weighed.*, _quantum * weighed.cost / weighed.weight as step,
               -- Where there are enough candidates, none has a turn after the last of them has had its first.
               case when count(*) over () < _turns then 'infinity' else max(weighed.pass) over () end as ends_at
        from (
          (select lane.tenant as name, false as is_group, min(lane.pass) as pass, max(lane.cost) as cost,
                  (select coalesce(min(tenant.weight), 1) from :schema.tenant where tenant.queue = _queue and tenant.tenant = lane.tenant) as weight
           from unnest(_kinds, _expected) as wanted (kind, expected)
           cross join lateral (
             select ring.tenant, ring.pass, case when wanted.expected is null then 1 else greatest(0.001, coalesce(ring.seconds, wanted.expected)) end as cost
             from :schema.ring
             where ring.queue = _queue and ring.grp = _grp and ring.kind = wanted.kind and ring.ready
             order by ring.pass, ring.tenant
             limit _turns
           ) as lane
           group by lane.tenant
           order by 3, 1
           limit _turns)
          union all
          (select node.grp, true, min(node.pass), max(node.cost),
                  (select coalesce(min(tenant_group.weight), 1) from :schema.tenant_group where tenant_group.queue = _queue and tenant_group.name = node.grp)
           from unnest(_kinds, _expected) as wanted (kind, expected)
           cross join lateral (
             select group_ring.grp, group_ring.pass, coalesce(wanted.expected, 1) as cost
             from :schema.group_ring
             where _grp = '' and group_ring.queue = _queue and group_ring.kind = wanted.kind and group_ring.ready
             order by group_ring.pass, group_ring.grp
             limit _turns
           ) as node
           group by node.grp
           order by 3, 1
           limit _turns)
          order by 3, 1, 2
          limit _turns
        ) as weighed
      ) as candidate
      cross join lateral generate_series(0, least(_turns - 1, floor(least(64, (candidate.ends_at - candidate.pass) / candidate.step + 1e-9)))::integer) as turn (number)
      order by place
      limit _turns
    ) as turn
    group by turn.name, turn.is_group, turn.weight
    order by min(turn.starts_at), turn.name
  ) as share;
end $tenantry$;

-- The turns of a claim, tenant by tenant: those of a group are given out among its tenants. Cuts each share to what the tenant may
-- start, and parks the tenants that may start nothing; where these were all, the answer is empty and retry is true.
create function :schema.turns_v1(
  _queue text, _kinds text[], _expected double precision[], _wanted integer, _quantum integer, _now timestamptz,
  _bound boolean,
  out tenants text[], out groups text[], out weights double precision[], out shares integer[], out rated boolean, out parked boolean,
  out retry boolean
)
language plpgsql
as $tenantry$
declare
  _picked record;
  _inner record;
  _room record;
  _emptied text[];
  _rooms integer[];
  _untils timestamptz[];
begin
  rated := false;
  parked := false;
  retry := false;
  -- Assigned, not selected: as an expression a function costs 40 µs less.
  _picked := :schema.pick_v1(_queue, '', _kinds, _expected, _wanted, _quantum);
  if _picked.names is null then
    return;
  end if;
  if true = any (_picked.are_groups) and _quantum >= all (_picked.shares) then
    -- What a group passes on in one turn goes to its first tenant; so they are all asked in one statement.
    select array_agg(served.tenant), array_agg(served.grp), array_agg(served.weight), array_agg(served.share),
           array_agg(served.grp) filter (where served.is_group and served.tenant is null)
    into tenants, groups, weights, shares, _emptied
    from (
      select case when picked.is_group then head.tenant else picked.name end as tenant, case when picked.is_group then picked.name else '' end as grp,
             case when picked.is_group
                  then (select coalesce(min(tenant.weight), 1) from :schema.tenant where tenant.queue = _queue and tenant.tenant = head.tenant)
                  else picked.weight end as weight,
             picked.share, picked.is_group
      from unnest(_picked.names, _picked.are_groups, _picked.weights, _picked.shares) with ordinality
        as picked (name, is_group, weight, share, place)
      left join lateral (
        select first.tenant
        from unnest(_kinds) as wanted (kind)
        cross join lateral (
          select ring.tenant, ring.pass from :schema.ring
          where ring.queue = _queue and ring.grp = picked.name and ring.kind = wanted.kind and ring.ready
          order by ring.pass, ring.tenant
          limit 1
        ) as first
        where picked.is_group
        order by first.pass, first.tenant
        limit 1
      ) as head on true
      order by picked.place
    ) as served;
  elsif true = any (_picked.are_groups) then
    for i in 1 .. cardinality(_picked.names) loop
      if _picked.are_groups[i] then
        _inner := :schema.pick_v1(_queue, _picked.names[i], _kinds, _expected, _picked.shares[i], _quantum);
        if _inner.names is null then
          _emptied := _emptied || _picked.names[i];
          continue;
        end if;
        tenants := tenants || _inner.names;
        groups := groups || array_fill(_picked.names[i], array[cardinality(_inner.names)]);
        weights := weights || _inner.weights;
        shares := shares || _inner.shares;
      else
        tenants := tenants || _picked.names[i];
        groups := groups || ''::text;
        weights := weights || _picked.weights[i];
        shares := shares || _picked.shares[i];
      end if;
    end loop;
  else
    tenants := _picked.names;
    groups := array_fill(''::text, array[cardinality(tenants)]);
    weights := _picked.weights;
    shares := _picked.shares;
  end if;
  if _emptied is not null then
    -- Its lanes were lost with the unlogged ring, say. Looked at again, or the claim would go round in a circle.
    perform :schema.refresh_groups_v1(_queue, _kinds, _emptied);
    retry := tenants is null;
  end if;
  if not _bound or tenants is null then
    return;
  end if;

  _room := :schema.rooms_v1(_queue, tenants, _now);
  _rooms := _room.rooms;
  _untils := _room.untils;
  rated := _room.rated;
  if array_length(array_remove(_untils, null), 1) > 0 then
    parked := true;
    perform :schema.park_v1(_queue,
      array(select given.tenant from unnest(tenants, _untils) as given (tenant, until) where given.until is not null),
      array_remove(_untils, null), _now);
    if groups <> array_fill(''::text, array[cardinality(groups)]) then
      perform :schema.refresh_groups_v1(_queue, _kinds, array_remove(groups, ''));
    end if;
  end if;
  if _wanted > any (array_remove(_rooms, null)) then
    select array_agg(given.tenant), array_agg(given.grp), array_agg(given.weight), array_agg(least(given.share, given.room))
    into tenants, groups, weights, shares
    from unnest(tenants, groups, weights, shares, _rooms) as given (tenant, grp, weight, share, room)
    where given.room is null or given.room > 0;
    retry := tenants is null;
  end if;
end $tenantry$;

-- Splits each tenant's share over its ready lanes by the order of their jobs. Looks without locking.
create function :schema.split_v1(
  _queue text, _kinds text[], _tenants text[], _shares integer[],
  out tenants text[], out kinds text[], out quotas integer[], out head_ats timestamptz[], out head_ids bigint[]
)
language plpgsql
as $tenantry$
begin
  if cardinality(_kinds) = 1 then
    select array_agg(lane.tenant order by served.place), array_agg(lane.kind order by served.place), array_agg(served.share order by served.place),
           array_agg(lane.head_at order by served.place), array_agg(lane.head_id order by served.place)
    into tenants, kinds, quotas, head_ats, head_ids
    from unnest(_tenants, _shares) with ordinality as served (tenant, share, place)
    cross join lateral (
      select ring.tenant, ring.kind, ring.head_at, ring.head_id from :schema.ring
      where ring.queue = _queue and ring.tenant = served.tenant
      offset 0
    ) as lane
    -- Asked for with the kind in one go, PostgreSQL may find another index as cheap, and read all lanes of the kind.
    where lane.kind = _kinds[1];
    return;
  end if;
  -- In the order of their turns, since the room of a kind is given out in it.
  select array_agg(lane.tenant order by lane.turn, lane.first_place), array_agg(lane.kind order by lane.turn, lane.first_place),
         array_agg(lane.jobs order by lane.turn, lane.first_place), array_agg(lane.head_at order by lane.turn, lane.first_place),
         array_agg(lane.head_id order by lane.turn, lane.first_place)
  into tenants, kinds, quotas, head_ats, head_ids
  from (
    select head.tenant, head.kind, head.head_at, head.head_id, min(head.turn) as turn, min(head.place) as first_place, min(head.share) as share,
           -- An empty lane is looked at all the same, to be found empty.
           greatest(1, count(*) filter (where head.place <= head.share))::integer as jobs
    from (
      select lane.tenant, lane.kind, lane.head_at, lane.head_id, lane.share, lane.turn,
             row_number() over (partition by lane.tenant order by job.order_at nulls first, job.id) as place
      from (
        select own.tenant, own.kind, own.head_at, own.head_id, served.share, served.turn
        from unnest(_tenants, _shares) with ordinality as served (tenant, share, turn)
        cross join lateral (
          select ring.tenant, ring.kind, ring.head_at, ring.head_id, ring.ready from :schema.ring
          where ring.queue = _queue and ring.tenant = served.tenant
          offset 0
        ) as own
        where own.ready and own.kind = any (_kinds)
      ) as lane
      left join lateral (
        select job.order_at, job.id
        from :schema.job
        where job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
          and (job.order_at, job.id) >= (lane.head_at, lane.head_id)
        order by job.order_at, job.id
        limit lane.share
      ) as job on true
    ) as head
    group by head.tenant, head.kind, head.head_at, head.head_id
  ) as lane
  where lane.first_place <= lane.share;
end $tenantry$;

-- Cuts the quotas of lanes, in the order of their turns, so that no kind gets more than its room.
create function :schema.cut_v1(_kinds text[], _rooms integer[], _lane_kinds text[], _quotas integer[]) returns integer[]
language plpgsql
as $tenantry$
begin
  return array(
    select case when lane.room is null then lane.quota else greatest(0, least(lane.quota, lane.room - (lane.before - lane.quota)))::integer end
    from (
      select given.place, given.quota, _rooms[array_position(_kinds, given.kind)] as room,
             sum(given.quota) over (partition by given.kind order by given.place) as before
      from unnest(_lane_kinds, _quotas) with ordinality as given (kind, quota, place)
    ) as lane
    order by lane.place
  );
end $tenantry$;

-- Takes those of the next lanes that have no jobs out of the order of the ring: of up to _lanes of each kind, among the tenants
-- without a group, and in each of the next 16 groups.
create function :schema.spend_ahead_v1(_queue text, _kinds text[], _lanes integer) returns void
language plpgsql
as $tenantry$
declare
  _groups text[];
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
  update :schema.ring
  set ready = false
  where ring.ctid = any (array(
    select lane.ctid
    from unnest(''::text || _groups) as parent (grp)
    cross join unnest(_kinds) as wanted (kind)
    cross join lateral (
      select next.ctid, next.tenant, next.head_at, next.head_id from :schema.ring as next
      where next.queue = _queue and next.grp = parent.grp and next.kind = wanted.kind and next.ready
      order by next.pass, next.tenant
      limit _lanes
    ) as lane
    where (
      select job.id from :schema.job
      where job.queue = _queue and job.kind = wanted.kind and job.tenant = lane.tenant and job.state = 'available'
        and (job.order_at, job.id) >= (lane.head_at, lane.head_id)
      order by job.order_at, job.id
      limit 1
    ) is null
  ));
  if cardinality(_groups) > 0 then
    perform :schema.refresh_groups_v1(_queue, _kinds, _groups);
  end if;
end $tenantry$;

-- Claims up to _count jobs of the kinds, least served tenants first. Called by claim_v1, which sets up the session.
create function :schema.claim_fair_v1(
  _queue text, _lease_id uuid, _worker_id text, _kinds text[], _count integer, _lease_ms double precision
) returns integer
language plpgsql
as $tenantry$
declare
  -- A turn takes up to this many jobs: few ring rows are written when backlogs are deep, and single jobs alternate when few
  -- are asked for.
  _quantum integer := ceil(_count / 8.0);
  _lock_class integer := (quote_ident(:schema_literal) || '.ring')::regclass::oid::integer;
  _now timestamptz;
  _claimed integer := 0;
  _turns integer;
  _walked_round boolean := false;
  -- Rounds on end that found tenants without room, and rounds on end that found nothing to take.
  _parkings integer := 0;
  _vain integer := 0;
  -- Whether lanes gave less than their quotas, so that they are looked for once more, now for as many jobs as each gave.
  _looked_again boolean := false;
  _per_lane integer := _quantum;
  -- The tenants that have turns now, and the lanes of these that are taken from.
  _tenants text[];
  _weights double precision[];
  _shares integer[];
  _passes double precision[];
  _lane_tenants text[];
  _lane_kinds text[];
  _lane_quotas integer[];
  _lane_head_ats timestamptz[];
  _lane_head_ids bigint[];
  -- What each lane gave, by its name: kind and tenant, with a length that keeps any two apart. Written out wherever it is
  -- needed, since PostgreSQL does not inline a function here, and its calls would cost 150 µs a claim.
  _taken integer;
  _served text[];
  _served_tenants text[];
  _served_jobs integer[];
  _served_head_ats timestamptz[];
  _served_head_ids bigint[];
  _served_kinds text[];
  _charges double precision[];
  -- Lanes that have nothing more to give now.
  _spent text[];
  -- What discovery has to do.
  _due boolean;
  _signalled boolean;
  _noticed boolean;
  _known integer;
  _walk_at timestamptz;
  _rest_until timestamptz;
  _keys_walk_at timestamptz;
  -- Where the queue has settings (governed): the kinds that may be claimed and how many of each, what a job of each kind of the
  -- claim is expected to run if time is charged, and the groups of the tenants that have turns.
  _governed boolean;
  _open text[] := _kinds;
  _kind_rooms integer[];
  _caps record;
  _rated boolean := false;
  _expected double precision[];
  _open_expected double precision[];
  _groups text[];
  _turn record;
  _lane record;
  _cost record;
  _lane_names text[];
  _lane_costs real[];
begin
  -- An expression costs less than a statement, and the lock is mostly free.
  if not pg_try_advisory_xact_lock(_lock_class, hashtext(_queue)) then
    perform pg_advisory_xact_lock(_lock_class, hashtext(_queue));
  end if;
  _now := clock_timestamp();

  -- 1. Discover: bring the ring up to date.
  select exists (
           select from unnest(_kinds) as wanted (kind)
           cross join lateral (
             select job.id from :schema.job
             where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.attempt >= 0 and job.run_at <= _now
             order by job.run_at, job.id
             limit 1
           ) as due
         ),
         exists (
           select from unnest(_kinds) as wanted (kind)
           cross join lateral (
             select signal.id from :schema.signal where signal.queue = _queue and signal.kind = wanted.kind
             order by signal.id
             limit 1
           ) as head
         ),
         exists (
           select from unnest(_kinds || ''::text) as wanted (kind)
           cross join lateral (
             select notice.id from :schema.notice where notice.queue = _queue and notice.kind = wanted.kind
             order by notice.id
             limit 1
           ) as head
         ),
         coalesce((select queue.governed or queue.paused_at is not null from :schema.queue where queue.name = _queue), false),
         (select walk.walk_at from :schema.walk where walk.queue = _queue and walk.kind = ''),
         count(*), min(walk.walk_at), max(walk.rest_until)
  into _due, _signalled, _noticed, _governed, _keys_walk_at, _known, _walk_at, _rest_until
  from :schema.walk
  where walk.queue = _queue and walk.kind = any (_kinds);
  if _governed then
    _caps := :schema.caps_v1(_queue, _kinds, _count, _now);
    _open := _caps.kinds;
    _kind_rooms := _caps.rooms;
    _count := _caps.room;
    _rated := _caps.rated;
    if _caps.timed then
      _expected := :schema.expected_v1(_queue, _kinds);
    end if;
    -- Where there are no such rates, now and then all the same: there may have been.
    if _caps.keys_rated or _keys_walk_at <= _now then
      perform :schema.admit_due_v1(_queue, _now);
    end if;
    if _caps.bound then
      perform :schema.unpark_due_v1(_queue, _kinds, _now);
      if _keys_walk_at is null or _keys_walk_at <= _now then
        -- As often as the walk along the keys: every 5 s, or a quarter of a second where there are keys.
        perform :schema.look_at_parked_v1(_queue, _kinds, _now);
      end if;
    end if;
  end if;
  if _keys_walk_at is null or _keys_walk_at <= _now then
    perform :schema.walk_keys_v1(_queue, case when _keys_walk_at is null then 5000 else 8 end, _keys_walk_at is null);
    _signalled := true;
  end if;
  if _known < cardinality(_kinds) then
    -- Kinds that nobody has asked for before, or the unlogged ring was lost in a crash. The bound keeps this well under a second;
    -- the walks of the next claims go on from there.
    perform :schema.begin_v1(_queue, _kinds, array(select unnest(_kinds) except select walk.kind from :schema.walk where walk.queue = _queue));
  elsif _walk_at <= _now then
    perform :schema.walk_v1(_queue, _kinds, array(
      select walk.kind from :schema.walk where walk.queue = _queue and walk.kind = any (_kinds) and walk.walk_at <= _now), 8, false);
  end if;
  if _due and :schema.promote_v1(_queue, _kinds) >= 500 then
    perform :schema.promote_by_tenant_v1(_queue, _kinds);
  end if;
  if _noticed or _due then
    perform :schema.fold_notices_v1(_queue, _kinds);
  end if;
  if _signalled or _noticed or _due then
    perform :schema.fold_signals_v1(_queue, _kinds);
  end if;
  if cardinality(_open) = 0 then
    return 0;
  end if;

  while _claimed < _count loop
    _turns := ceil((_count - _claimed)::double precision / _per_lane);
    _shares := null;
    -- 2. Pick the turns. The common case is one kind, no settings of tenants, and nobody so far behind as to get a second turn before the
    -- last of these has had its first.
    if cardinality(_kinds) = 1 and not _governed then
      select array_agg(lane.tenant), array_agg(lane.pass), array_agg(lane.head_at), array_agg(lane.head_id)
      into _tenants, _passes, _lane_head_ats, _lane_head_ids
      from (
        select ring.tenant, ring.pass, ring.head_at, ring.head_id
        from :schema.ring
        where ring.queue = _queue and ring.grp = '' and ring.kind = _kinds[1] and ring.ready
        order by ring.pass, ring.tenant
        limit _turns
      ) as lane;
      -- Where the second turn of the first would begin as the first one of the last does, the name decides.
      if cardinality(_tenants) = 1 or (cardinality(_tenants) = _turns and (_passes[_turns] - _passes[1] < _per_lane
          or _passes[_turns] - _passes[1] = _per_lane and _tenants[1] > _tenants[_turns] collate "C")) then
        _weights := array_fill(1::double precision, array[cardinality(_tenants)]);
        _shares := array_fill(case cardinality(_tenants) when 1 then _count - _claimed else _per_lane end, array[cardinality(_tenants)]);
        _lane_tenants := _tenants;
        _lane_kinds := array_fill(_kinds[1], array[cardinality(_tenants)]);
        _lane_quotas := _shares;
      end if;
    end if;
    if _shares is null then
      if _governed then
        if _expected is not null and _open <> _kinds then
          _open_expected := array(select _expected[array_position(_kinds, kind)] from unnest(_open) as kind);
        else
          _open_expected := _expected;
        end if;
        _turn := :schema.turns_v1(_queue, _open, _open_expected, _count - _claimed, _per_lane, _now, _caps.bound);
        -- Now and then a tenant reaches its limit. Where round after round finds such, many have been paused, say, or the ring was lost:
        -- then they are parked by the hundred, or the claim would take many seconds.
        _parkings := case when _turn.parked then _parkings + 1 else 0 end;
        if _parkings > 8 then
          perform :schema.park_ahead_v1(_queue, _open, (64 * 2 ^ least(4, _parkings - 9))::integer, _now);
        end if;
        continue when _turn.retry;
        _tenants := _turn.tenants;
        _groups := _turn.groups;
        _weights := _turn.weights;
        _shares := _turn.shares;
        _rated := _rated or coalesce(_turn.rated, false);
      else
        _turn := :schema.pick_v1(_queue, '', _kinds, null, _count - _claimed, _per_lane);
        _tenants := _turn.names;
        _weights := _turn.weights;
        _shares := _turn.shares;
      end if;
      _lane := :schema.split_v1(_queue, _open, _tenants, _shares);
      _lane_tenants := _lane.tenants;
      _lane_kinds := _lane.kinds;
      _lane_quotas := _lane.quotas;
      _lane_head_ats := _lane.head_ats;
      _lane_head_ids := _lane.head_ids;
      -- Where every kind has room for the rest of the batch, there is nothing to cut.
      if _kind_rooms is not null and _count - _claimed > any (array_remove(_kind_rooms, null)) then
        _lane_quotas := :schema.cut_v1(_open, _kind_rooms, _lane_kinds, _lane_quotas);
      end if;
      if _expected is not null then
        _cost := :schema.costs_v1(_queue, _kinds, _expected, _lane_tenants, _lane_kinds);
        _lane_names := _cost.names;
        _lane_costs := _cost.costs;
      end if;
    end if;
    if _lane_tenants is null then
      -- The ring is used up and the batch is not full. Walk all the way round, once, before saying so, unless the last such walk was
      -- long and in vain.
      exit when _walked_round or _rest_until > _now;
      _walked_round := true;
      exit when :schema.walk_v1(_queue, _kinds, _kinds, 5000, true) = 0;
      continue;
    end if;

    -- 3. Take and mark. A row that somebody else holds (an operator, a cancel) is skipped and never waited for.
    with marked as (
      update :schema.job
      set state = 'running', attempt = job.attempt + 1, lease_id = _lease_id, claimed_at = _now,
          charged = _lane_costs[array_position(_lane_names, length(job.kind) || ':' || job.kind || job.tenant)]
      where job.ctid = any (array(
        select taken.ctid
        from unnest(_lane_tenants, _lane_kinds, _lane_quotas, _lane_head_ats, _lane_head_ids)
          as lane (tenant, kind, quota, head_at, head_id)
        cross join lateral (
          select waiting.ctid
          from :schema.job as waiting
          where waiting.queue = _queue and waiting.kind = lane.kind and waiting.tenant = lane.tenant and waiting.state = 'available'
            and (waiting.order_at, waiting.id) >= (lane.head_at, lane.head_id)
          order by waiting.order_at, waiting.id
          limit lane.quota
          for no key update skip locked
        ) as taken
        limit _count - _claimed
      ))
      returning job.kind, job.tenant, job.order_at, job.id
    )
    select coalesce(sum(lane.jobs), 0), array_agg(length(lane.kind) || ':' || lane.kind || lane.tenant),
           array_agg(lane.tenant), array_agg(lane.kind), array_agg(lane.jobs), array_agg(lane.head_at), array_agg(lane.head_id)
    into _taken, _served, _served_tenants, _served_kinds, _served_jobs, _served_head_ats, _served_head_ids
    from (
      -- Where several times were taken, those of the last one are looked through again: it may have more.
      select marked.kind, marked.tenant, count(*)::integer as jobs, max(marked.order_at) as head_at,
             case when min(marked.order_at) = max(marked.order_at) then max(marked.id) else 0 end as head_id
      from marked
      group by marked.kind, marked.tenant
    ) as lane;
    if _claimed = 0 and _taken > 0 then
      -- Now, since what runs is counted by way of the leases.
      perform :schema.hold_v1(_queue, _lease_id, _worker_id, _lease_ms);
    end if;
    _claimed := _claimed + _taken;

    -- 4. Find the lanes that are spent. One that gave less than its quota has nothing more to give now, whatever the index still
    -- shows. Where lanes are shallow, those that gave their last job are looked for too; elsewhere it is cheaper that their next
    -- turn finds out.
    _spent := null;
    if _claimed < _count or _looked_again then
      _spent := array(
        select lane.name
        from (
          select length(picked.kind) || ':' || picked.kind || picked.tenant as name, picked.*
          from unnest(_lane_tenants, _lane_kinds, _lane_quotas, _lane_head_ats, _lane_head_ids)
            as picked (tenant, kind, quota, head_at, head_id)
        ) as lane
        -- A batch that is full may have been cut before the lane was through.
        where (_claimed < _count and lane.quota > coalesce(_served_jobs[array_position(_served, lane.name)], 0))
          or (_looked_again and not exists (
            select from :schema.job
            where job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
              and (job.order_at, job.id) >= (lane.head_at, lane.head_id)
          ))
      );
    end if;
    if _rated and _taken > 0 then
      perform :schema.debit_v1(_queue, _served_tenants, _served_kinds, _served_jobs, _now);
    end if;
    if _kind_rooms is not null and _claimed < _count then
      select array_agg(kind.name), array_agg(kind.room) into _open, _kind_rooms
      from (
        select given.name, given.room - coalesce((
          select sum(lane.jobs) from unnest(_served_kinds, _served_jobs) as lane (kind, jobs) where lane.kind = given.name), 0)::integer as room
        from unnest(_open, _kind_rooms) as given (name, room)
      ) as kind
      where kind.room is null or kind.room > 0;
    end if;
    _charges := _served_jobs;
    if cardinality(_kinds) > 1 or _expected is not null then
      select array_agg(served.tenant), array_agg(served.charge) into _served_tenants, _charges
      from (
        select lane.tenant, sum(lane.jobs * case when _expected is null then 1 else _lane_costs[array_position(_lane_names, lane.name)] end) as charge
        from unnest(_served_tenants, _served, _served_jobs) as lane (tenant, name, jobs)
        group by lane.tenant
      ) as served;
    end if;

    -- 5. Charge. By ctid alone, found by one probe for each tenant: joined to the ring, asked for with any(), or told that they are
    -- ready, PostgreSQL may read the whole ring instead. Nobody else writes to these rows, so they stay where they are.
    update :schema.ring
    set pass = ring.pass + coalesce(_charges[array_position(_served_tenants, ring.tenant)], 0)
                           / _weights[array_position(_tenants, ring.tenant)],
        served_at = case when ring.tenant = any (_served_tenants) then _now else ring.served_at end,
        head_at = coalesce(_served_head_ats[array_position(_served, length(ring.kind) || ':' || ring.kind || ring.tenant)], ring.head_at),
        head_id = coalesce(_served_head_ids[array_position(_served, length(ring.kind) || ':' || ring.kind || ring.tenant)], ring.head_id),
        ready = _spent is null or length(ring.kind) || ':' || ring.kind || ring.tenant <> all (_spent)
    where ring.ctid = any (array(
      select lane.ctid
      from unnest(_tenants) as picked (tenant)
      cross join lateral (
        select own.ctid, own.kind, own.ready from :schema.ring as own
        where own.queue = _queue and own.tenant = picked.tenant
        offset 0
      ) as lane
      where lane.ready and lane.kind = any (_kinds)
    ));

    if _governed and _groups <> array_fill(''::text, array[cardinality(_groups)]) then
      perform :schema.charge_groups_v1(_queue, _kinds, array(
        select _groups[array_position(_tenants, served.tenant)] from unnest(_served_tenants) with ordinality as served (tenant, place) order by served.place
      ), _charges);
      if _spent is not null then
        perform :schema.refresh_groups_v1(_queue, _kinds, array_remove(_groups, ''));
      end if;
    end if;
    exit when _open is null;

    -- Now and then a lane is found empty. Where round after round brings nothing, many are, because their jobs were cancelled, purged or
    -- moved, say: then they are found by the hundred, or the claim would take many seconds.
    _vain := case when _taken = 0 then _vain + 1 else 0 end;
    if _vain > 8 then
      perform :schema.spend_ahead_v1(_queue, _open, (64 * 2 ^ least(4, _vain - 9))::integer);
    end if;
    -- Where lanes are shallow, look at more of them for less from each.
    if _claimed < _count then
      _per_lane := least(_per_lane, greatest(1, _taken / cardinality(_lane_tenants)));
      _looked_again := true;
    end if;
  end loop;
  if _governed and _claimed > 0 then
    if _caps.keys_rated then
      perform :schema.debit_keys_v1(_queue, _lease_id, _now);
    end if;
  end if;
  return _claimed;
end $tenantry$;
