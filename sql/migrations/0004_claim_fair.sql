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
--             the pass. Claims of one queue take turns on an advisory lock. It is the first thing that a claim waits for, while
--             it holds nothing, and nobody else writes the ring: so there is no deadlock and no falsely empty claim.
-- Discovery.  Enqueue touches no ring row. It appends a signal, which the next claim folds in. A signal can be missing when
--             a lane was emptied while the enqueue was in flight, so a walk along the claim index heals: a few probes
--             a claim, and all the way round before a claim reports that there is less than was asked for.
-- Invariants. (F1) A turn charges all ready lanes of its tenant alike. (F2) A claim returns fewer jobs than asked for only
--             when, at its last look, no job of its kinds was available that nobody held. (F3) A lane that comes back starts
--             at the largest of its tenant's passes and the smallest pass of the lanes that wait: no credit for idling.
--
-- Each statement here costs some 10 µs before it does anything, at every claim: the common case runs few and small ones.

-- Moves scheduled jobs that are due into the claim index, at most 200 of each kind, and signals their lanes.
create function :schema.promote_v1(_queue text, _kinds text[]) returns void
language plpgsql
as $tenantry$
declare
  _due_kinds text[];
  _due_tenants text[];
begin
  with promoted as (
    update :schema.job set state = 'available'
    where job.state = 'scheduled' and job.id = any (array(
      select due.id
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select job.id
        from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.run_at <= clock_timestamp()
        order by job.run_at, job.id
        limit 200
        for no key update skip locked
      ) as due
    ))
    returning job.kind, job.tenant
  )
  select array_agg(promoted.kind), array_agg(promoted.tenant) into _due_kinds, _due_tenants from promoted;
  if _due_kinds is not null then
    perform :schema.signal_v1(array_fill(_queue, array[cardinality(_due_kinds)]), _due_kinds, _due_tenants);
  end if;
end $tenantry$;

-- Makes lanes ready that are not.
create function :schema.enter_ring_v1(_queue text, _kinds text[], _tenants text[]) returns void
language plpgsql
as $tenantry$
begin
  with lane as materialized (
    select distinct given.kind, given.tenant
    from unnest(_kinds, _tenants) as given (kind, tenant)
    where not exists (
      select from :schema.ring
      where ring.queue = _queue and ring.tenant = given.tenant and ring.kind = given.kind and ring.ready
    )
  ),
  floor as materialized (
    -- Virtual time: where the lanes that wait begin or, when none waits, where the service of the past ended.
    select wanted.kind, coalesce(
      (select ring.pass from :schema.ring
       where ring.queue = _queue and ring.kind = wanted.kind and ring.ready
       order by ring.pass limit 1),
      (select ring.pass from :schema.ring
       where ring.queue = _queue and ring.kind = wanted.kind and not ring.ready
       order by ring.pass desc limit 1),
      0) as pass
    from (select distinct lane.kind from lane) as wanted
  )
  insert into :schema.ring as ring (queue, tenant, kind, pass, ready)
  select _queue, lane.tenant, lane.kind,
         greatest(floor.pass, (select max(own.pass) from :schema.ring as own where own.queue = _queue and own.tenant = lane.tenant)),
         true
  from lane
  join floor on floor.kind = lane.kind
  on conflict (queue, tenant, kind) do update set ready = true, pass = excluded.pass;
end $tenantry$;

-- Folds up to 256 signals into the ring.
create function :schema.fold_signals_v1(_queue text) returns void
language plpgsql
as $tenantry$
declare
  _kinds text[];
  _tenants text[];
begin
  with folded as (
    delete from :schema.signal
    where signal.queue = _queue
      and signal.id = any (array(select head.id from :schema.signal as head where head.queue = _queue order by head.id limit 256))
    returning signal.kind, signal.tenant
  )
  select array_agg(folded.kind), array_agg(folded.tenant) into _kinds, _tenants from folded;
  if _kinds is not null then
    perform :schema.enter_ring_v1(_queue, _kinds, _tenants);
  end if;
end $tenantry$;

-- Walks along the claim index, from where the last walk of each kind stopped or from the start: up to _hops tenants that have
-- available jobs, one index probe each. Answers with how many lanes it found; when it has come round, the next walk may wait.
create function :schema.walk_v1(_queue text, _kinds text[], _hops integer, _from_start boolean) returns integer
language plpgsql
as $tenantry$
declare
  _kind text;
  _at text;
  _next text;
  _hop integer;
  _came_round boolean := true;
  _found_kinds text[] := '{}';
  _found_tenants text[] := '{}';
begin
  foreach _kind in array _kinds loop
    _at := '';
    if not _from_start then
      select walk.tenant into _at from :schema.walk where walk.queue = _queue and walk.kind = _kind;
      _at := coalesce(_at, '');
    end if;
    _hop := 0;
    loop
      select job.tenant into _next
      from :schema.job
      where job.queue = _queue and job.kind = _kind and job.state = 'available' and job.tenant > _at
      order by job.tenant
      limit 1;
      exit when _next is null or _hop = _hops;
      _found_kinds := _found_kinds || _kind;
      _found_tenants := _found_tenants || _next;
      _at := _next;
      _hop := _hop + 1;
    end loop;
    if _next is not null then
      _came_round := false;
    end if;
    insert into :schema.walk as walk (queue, kind, tenant)
    values (_queue, _kind, case when _next is null then '' else _at end)
    on conflict (queue, kind) do update set tenant = excluded.tenant where walk.tenant <> excluded.tenant;
  end loop;

  insert into :schema.ring_state (queue, walk_at)
  values (_queue, case when _came_round then clock_timestamp() + interval '50 milliseconds' else '-infinity' end)
  on conflict (queue) do update set walk_at = excluded.walk_at;
  if cardinality(_found_kinds) > 0 then
    perform :schema.enter_ring_v1(_queue, _found_kinds, _found_tenants);
  end if;
  return cardinality(_found_kinds);
end $tenantry$;

-- Gives out turns: whose pass is smallest, up to _turns tenants, and how many jobs each may have, _wanted in all or a little more.
create function :schema.pick_v1(
  _queue text, _kinds text[], _wanted integer, _quantum integer,
  out tenants text[], out weights double precision[], out shares integer[]
)
language plpgsql
as $tenantry$
declare
  _turns integer := ceil(_wanted::double precision / _quantum);
  _passes double precision[];
  _weighted boolean;
begin
  if cardinality(_kinds) = 1 then
    select array_agg(lane.tenant), array_agg(lane.pass) into tenants, _passes
    from (
      select ring.tenant, ring.pass
      from :schema.ring
      where ring.queue = _queue and ring.kind = _kinds[1] and ring.ready
      order by ring.pass
      limit _turns
    ) as lane;
  else
    select array_agg(lowest.tenant), array_agg(lowest.pass) into tenants, _passes
    from (
      select lane.tenant, min(lane.pass) as pass
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select ring.tenant, ring.pass
        from :schema.ring
        where ring.queue = _queue and ring.kind = wanted.kind and ring.ready
        order by ring.pass
        limit _turns
      ) as lane
      group by lane.tenant
      order by 2
      limit _turns
    ) as lowest;
  end if;
  if tenants is null then
    return;
  end if;

  select true into _weighted
  from :schema.tenant where tenant.queue = _queue and tenant.tenant = any (tenants) and tenant.weight <> 1 limit 1;
  if _weighted is null then
    weights := array_fill(1::double precision, array[cardinality(tenants)]);
    if cardinality(tenants) = 1 then
      shares := array[_wanted];
      return;
    elsif cardinality(tenants) = _turns and _passes[_turns] - _passes[1] <= _quantum then
      -- Nobody is so far behind as to get a second turn before the last of these gets its first.
      shares := array_fill(_quantum, array[_turns]);
      return;
    end if;
  else
    weights := array(
      select coalesce(tenant.weight, 1)
      from unnest(tenants) with ordinality as candidate (tenant, place)
      left join :schema.tenant on tenant.queue = _queue and tenant.tenant = candidate.tenant
      order by candidate.place
    );
  end if;

  -- The turns that begin at the smallest passes: a tenant far behind, or with a large weight, has several of them.
  select array_agg(share.tenant), array_agg(share.weight), array_agg(share.jobs)
  into tenants, weights, shares
  from (
    select turn.tenant, turn.weight, least(count(*) * _quantum, _wanted)::integer as jobs
    from (
      select candidate.tenant, candidate.weight, candidate.pass + turn.number * _quantum / candidate.weight as starts_at
      from unnest(tenants, _passes, weights) as candidate (tenant, pass, weight)
      cross join generate_series(0, _turns - 1) as turn (number)
      order by starts_at, candidate.tenant
      limit _turns
    ) as turn
    group by turn.tenant, turn.weight
    order by min(turn.starts_at)
  ) as share;
end $tenantry$;

-- Splits each tenant's share over its ready lanes by the order of their jobs. Looks without locking.
create function :schema.split_v1(
  _queue text, _kinds text[], _tenants text[], _shares integer[],
  out tenants text[], out kinds text[], out quotas integer[]
)
language plpgsql
as $tenantry$
begin
  select array_agg(lane.tenant), array_agg(lane.kind), array_agg(lane.jobs)
  into tenants, kinds, quotas
  from (
    select head.tenant, head.kind, greatest(1, count(*) filter (where head.place <= head.share))::integer as jobs,
           min(head.place) as first_place, min(head.share) as share
    from (
      select lane.tenant, lane.kind, lane.share,
             row_number() over (partition by lane.tenant order by job.order_at nulls first, job.id) as place
      from (
        select ring.tenant, ring.kind, _shares[array_position(_tenants, ring.tenant)] as share
        from :schema.ring
        where ring.queue = _queue and ring.tenant = any (_tenants) and ring.kind = any (_kinds) and ring.ready
      ) as lane
      left join lateral (
        select job.order_at, job.id
        from :schema.job
        where job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
        order by job.order_at, job.id
        limit lane.share
      ) as job on true
    ) as head
    group by head.tenant, head.kind
  ) as lane
  where lane.first_place <= lane.share;
end $tenantry$;

-- Claims up to _count jobs of the kinds, least served tenants first. Called by claim_v1, which sets up the session.
create function :schema.claim_fair_v1(_queue text, _lease_id uuid, _kinds text[], _count integer) returns integer
language plpgsql
as $tenantry$
declare
  -- A turn takes up to this many jobs: few ring rows are written when backlogs are deep, and single jobs alternate when few
  -- are asked for.
  _quantum integer := ceil(_count / 10.0);
  _claimed integer := 0;
  _walk_at timestamptz;
  _walked_round boolean := false;
  _tenants text[];
  _weights double precision[];
  _shares integer[];
  _lane_tenants text[];
  _lane_kinds text[];
  _lane_quotas integer[];
  _taken_tenants text[];
  _taken_kinds text[];
  _short text[];
begin
  perform pg_advisory_xact_lock((quote_ident(:schema_literal) || '.ring')::regclass::oid::integer, hashtext(_queue));

  if exists (
    select from :schema.job
    where job.queue = _queue and job.kind = any (_kinds) and job.state = 'scheduled' and job.run_at <= clock_timestamp()
  ) then
    perform :schema.promote_v1(_queue, _kinds);
  end if;
  if exists (select from :schema.signal where signal.queue = _queue) then
    perform :schema.fold_signals_v1(_queue);
  end if;
  select ring_state.walk_at into _walk_at from :schema.ring_state where ring_state.queue = _queue;
  if not found then
    -- A new queue, or the unlogged ring was lost in a crash: find the lanes anew. The bound keeps this under a second.
    perform :schema.walk_v1(_queue, _kinds, 100000, true);
  elsif _walk_at <= clock_timestamp() then
    perform :schema.walk_v1(_queue, _kinds, 16, false);
  end if;

  loop
    select pick.tenants, pick.weights, pick.shares into _tenants, _weights, _shares
    from :schema.pick_v1(_queue, _kinds, _count - _claimed, _quantum) as pick;
    if _tenants is null then
      -- The ring is used up and the batch is not full. Walk all the way round, once, before saying so.
      exit when _walked_round;
      _walked_round := true;
      exit when :schema.walk_v1(_queue, _kinds, 10000, true) = 0;
      continue;
    end if;
    if cardinality(_kinds) = 1 then
      _lane_tenants := _tenants;
      _lane_kinds := array_fill(_kinds[1], array[cardinality(_tenants)]);
      _lane_quotas := _shares;
    else
      select split.tenants, split.kinds, split.quotas into _lane_tenants, _lane_kinds, _lane_quotas
      from :schema.split_v1(_queue, _kinds, _tenants, _shares) as split;
    end if;

    -- Take and mark. A row that somebody else holds (an operator, a cancel) is skipped and never waited for.
    with marked as (
      update :schema.job
      set state = 'running', attempt = job.attempt + 1, lease_id = _lease_id, claimed_at = clock_timestamp()
      where job.ctid = any (array(
        select taken.ctid
        from unnest(_lane_tenants, _lane_kinds, _lane_quotas) as lane (tenant, kind, quota)
        cross join lateral (
          select waiting.ctid
          from :schema.job as waiting
          where waiting.queue = _queue and waiting.kind = lane.kind and waiting.tenant = lane.tenant and waiting.state = 'available'
          order by waiting.order_at, waiting.id
          limit lane.quota
          for no key update skip locked
        ) as taken
        limit _count - _claimed
      ))
      returning job.tenant, job.kind
    )
    select coalesce(array_agg(marked.tenant), '{}'), array_agg(marked.kind) into _taken_tenants, _taken_kinds from marked;
    _claimed := _claimed + cardinality(_taken_tenants);

    -- A lane that gave less than its quota has nothing more to give now, whatever the index still shows.
    _short := null;
    if _claimed < _count then
      _short := array(
        select length(lane.kind) || ':' || lane.kind || lane.tenant
        from unnest(_lane_tenants, _lane_kinds, _lane_quotas) as lane (tenant, kind, quota)
        where lane.quota > (
          select count(*) from unnest(_taken_tenants, _taken_kinds) as taken (tenant, kind)
          where taken.tenant = lane.tenant and taken.kind = lane.kind
        )
      );
    end if;

    -- Charge. After turns of a single job the index is asked for more, since many such lanes are empty now; after longer turns
    -- a lane that happens to be empty costs one wasted turn.
    update :schema.ring
    set pass = ring.pass + cardinality(array_positions(_taken_tenants, ring.tenant)) / _weights[array_position(_tenants, ring.tenant)],
        ready = case
          when ring.kind <> all (_kinds) then true
          when length(ring.kind) || ':' || ring.kind || ring.tenant = any (_short) then false
          when _quantum > 1 then true
          else exists (
            select from :schema.job
            where job.queue = _queue and job.kind = ring.kind and job.tenant = ring.tenant and job.state = 'available'
          )
        end
    where ring.queue = _queue and ring.tenant = any (_tenants) and ring.ready;

    exit when _claimed = _count;
  end loop;
  return _claimed;
end $tenantry$;
