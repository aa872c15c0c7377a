-- breaking: no
-- The fair claim: start-time fair queueing (Goyal, Vin, Cheng 1996) over the tenants that have work.
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
--             a claim, all the way round before a claim reports that there is less than was asked for.
-- Invariants. (F1) A turn charges all ready lanes of its tenant alike. (F2) A claim returns fewer jobs than asked for only when
--             no unlocked job of its kinds was available at the time of its last look. (F3) A tenant that comes back
--             starts at the larger of its own pass and the smallest pass of the lanes that wait: no credit for idling.

-- Moves scheduled jobs that are due into the claim index, at most 200 for each kind, and answers with their lanes.
create function :schema.promote_v1(_queue text, _kinds text[], out kinds text[], out tenants text[])
language plpgsql
as $tenantry$
begin
  with due as materialized (
    select job.id
    from unnest(_kinds) as wanted (kind)
    cross join lateral (
      select job.id
      from :schema.job
      where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.run_at <= clock_timestamp()
      order by job.run_at, job.id
      limit 200
      for no key update skip locked
    ) as job
  ),
  promoted as (
    update :schema.job set state = 'available'
    where job.id = any (array(select id from due)) and job.state = 'scheduled'
    returning job.kind, job.tenant
  )
  select array_agg(lane.kind), array_agg(lane.tenant) into kinds, tenants
  from (select distinct promoted.kind, promoted.tenant from promoted) as lane;
end $tenantry$;

-- Walks the claim index of one kind: the next _hops tenants that have available jobs, one index probe each.
-- Remembers where it stopped. came_round tells that the end was reached; the next walk begins at the start.
create function :schema.walk_v1(_queue text, _kind text, _from text, _hops integer, out tenants text[], out came_round boolean)
language plpgsql
as $tenantry$
declare
  _at text := _from;
  _next text;
begin
  tenants := '{}';
  came_round := false;
  while cardinality(tenants) < _hops loop
    select job.tenant into _next
    from :schema.job
    where job.queue = _queue and job.kind = _kind and job.state = 'available' and job.tenant > _at
    order by job.tenant
    limit 1;
    if _next is null then
      came_round := true;
      exit;
    end if;
    tenants := tenants || _next;
    _at := _next;
  end loop;
  insert into :schema.walk as walk (queue, kind, tenant, came_round_at)
  values (_queue, _kind, case when came_round then '' else _at end, case when came_round then clock_timestamp() else '-infinity' end)
  on conflict (queue, kind) do update set tenant = excluded.tenant, came_round_at = excluded.came_round_at;
end $tenantry$;

-- Makes lanes ready. A lane that is ready already stays as it is.
create function :schema.enter_ring_v1(_queue text, _virtual_time double precision, _kinds text[], _tenants text[]) returns void
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
    select wanted.kind,
           coalesce((
             select ring.pass from :schema.ring
             where ring.queue = _queue and ring.kind = wanted.kind and ring.ready
             order by ring.pass limit 1
           ), _virtual_time) as pass
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

-- Claims up to _count jobs of the kinds, least served tenants first. Called by claim_v1, which sets up the session.
create function :schema.claim_fair_v1(_queue text, _lease_id uuid, _kinds text[], _count integer) returns bigint[]
language plpgsql
as $tenantry$
declare
  _ids bigint[] := '{}';
  -- A turn takes up to this many jobs: few ring rows are written when backlogs are deep, and single jobs alternate
  -- when few are asked for. Jobs of one claim are handed out interleaved, so the start order is finer than the turns.
  _quantum integer := ceil(_count / 16.0);
  _virtual_time double precision;
  _walk record;
  _found record;
  _found_kinds text[] := '{}';
  _found_tenants text[] := '{}';
  _hops integer := 16;
  _walked_all boolean := false;
  _wanted integer;
  _turns integer;
  _tenants text[];
  _passes double precision[];
  _weights double precision[];
  _shares integer[];
  _lane_tenants text[];
  _lane_kinds text[];
  _lane_quotas integer[];
  _taken_ids bigint[];
  _taken_tenants text[];
  _short text[];
  _served_pass double precision;
begin
  perform pg_advisory_xact_lock((quote_ident(:schema_literal) || '.ring')::regclass::oid::integer, hashtext(_queue));

  select ring_state.virtual_time into _virtual_time from :schema.ring_state where ring_state.queue = _queue;
  if not found then
    -- A new queue, or the unlogged ring was lost in a crash: find all lanes anew. The bound keeps this under a second.
    insert into :schema.ring_state (queue, virtual_time) values (_queue, 0);
    _virtual_time := 0;
    _hops := 100000;
  end if;

  -- Discover: what became due, what was signalled, and a few steps of the walk.
  select promoted.kinds, promoted.tenants into _found from :schema.promote_v1(_queue, _kinds) as promoted;
  if _found.kinds is not null then
    _found_kinds := _found.kinds;
    _found_tenants := _found.tenants;
  end if;
  with folded as (
    delete from :schema.signal
    where signal.queue = _queue
      and signal.id = any (array(select head.id from :schema.signal as head where head.queue = _queue order by head.id limit 256))
    returning signal.kind, signal.tenant
  )
  select array_agg(folded.kind) as kinds, array_agg(folded.tenant) as tenants into _found from folded;
  if _found.kinds is not null then
    _found_kinds := _found_kinds || _found.kinds;
    _found_tenants := _found_tenants || _found.tenants;
  end if;
  for _walk in
    select wanted.kind, coalesce(walk.tenant, '') as tenant
    from unnest(_kinds) as wanted (kind)
    left join :schema.walk on walk.queue = _queue and walk.kind = wanted.kind
    where coalesce(walk.came_round_at, '-infinity') < clock_timestamp() - interval '50 milliseconds'
  loop
    select walked.tenants into _found from :schema.walk_v1(_queue, _walk.kind, _walk.tenant, _hops) as walked;
    _found_kinds := _found_kinds || array_fill(_walk.kind, array[cardinality(_found.tenants)]);
    _found_tenants := _found_tenants || _found.tenants;
  end loop;

  loop
    if cardinality(_found_kinds) > 0 then
      perform :schema.enter_ring_v1(_queue, _virtual_time, _found_kinds, _found_tenants);
      _found_kinds := '{}';
      _found_tenants := '{}';
    end if;

    -- Pick: the turns with the smallest passes. A tenant can have several of them, when its weight is large or it is far behind.
    _wanted := _count - cardinality(_ids);
    _turns := ceil(_wanted::double precision / _quantum);
    with candidate as materialized (
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
    ),
    turn as (
      select weighted.tenant, weighted.pass, weighted.weight, weighted.pass + place.number * _quantum / weighted.weight as starts_at
      from (
        select candidate.tenant, candidate.pass, coalesce(tenant.weight, 1) as weight
        from candidate
        left join :schema.tenant on tenant.queue = _queue and tenant.tenant = candidate.tenant
      ) as weighted
      cross join lateral generate_series(0, _turns - 1) as place (number)
      order by starts_at, weighted.tenant
      limit _turns
    )
    select array_agg(share.tenant), array_agg(share.pass), array_agg(share.weight), array_agg(share.jobs), max(share.last_start)
    into _tenants, _passes, _weights, _shares, _served_pass
    from (
      select turn.tenant, turn.pass, turn.weight, least(count(*) * _quantum, _wanted)::integer as jobs, max(turn.starts_at) as last_start
      from turn
      group by turn.tenant, turn.pass, turn.weight
      order by turn.pass, turn.tenant
    ) as share;

    if _tenants is not null then
      -- Split each tenant's share over its ready lanes, by the order of their jobs. With one kind there is nothing to split.
      if cardinality(_kinds) = 1 then
        _lane_tenants := _tenants;
        _lane_kinds := array_fill(_kinds[1], array[cardinality(_tenants)]);
        _lane_quotas := _shares;
      else
        select array_agg(split.tenant), array_agg(split.kind), array_agg(split.jobs)
        into _lane_tenants, _lane_kinds, _lane_quotas
        from (
          select head.tenant, head.kind, count(*)::integer as jobs
          from (
            select lane.tenant, lane.kind, lane.share,
                   row_number() over (partition by lane.tenant order by job.order_at, job.id) as place
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
          where head.place <= head.share
          group by head.tenant, head.kind
        ) as split;
      end if;

      -- Take. A row that somebody else holds (an operator, a cancel) is skipped and never waited for.
      with taken as materialized (
        select lane.number, job.id, job.order_at, lane.tenant
        from unnest(_lane_tenants, _lane_kinds, _lane_quotas) with ordinality as lane (tenant, kind, quota, number)
        cross join lateral (
          select job.id, job.order_at
          from :schema.job
          where job.queue = _queue and job.kind = lane.kind and job.tenant = lane.tenant and job.state = 'available'
          order by job.order_at, job.id
          limit lane.quota
          for no key update skip locked
        ) as job
        limit _wanted
      )
      select array_agg(ranked.id order by ranked.starts_at, ranked.tenant), array_agg(ranked.tenant)
      into _taken_ids, _taken_tenants
      from (
        select taken.id, taken.tenant,
               _passes[array_position(_tenants, taken.tenant)]
                 + (row_number() over (partition by taken.tenant order by taken.order_at, taken.id) - 1)
                   / _weights[array_position(_tenants, taken.tenant)] as starts_at
        from taken
      ) as ranked;

      -- A lane that gave less than its quota has nothing more to give now, whatever the index still shows.
      _taken_tenants := coalesce(_taken_tenants, '{}');
      if cardinality(_taken_tenants) < _wanted then
        select array_agg(length(lane.kind) || ':' || lane.kind || lane.tenant) into _short
        from unnest(_lane_tenants, _lane_kinds, _lane_quotas) as lane (tenant, kind, quota)
        where cardinality(array_positions(_taken_tenants, lane.tenant))
              < (select sum(other.quota) from unnest(_lane_tenants, _lane_quotas) as other (tenant, quota) where other.tenant = lane.tenant);
      else
        _short := null;
      end if;

      -- Mark.
      if _taken_ids is not null then
        update :schema.job
        set state = 'running', attempt = attempt + 1, lease_id = _lease_id, claimed_at = clock_timestamp()
        where job.id = any (_taken_ids);
        _ids := _ids || _taken_ids;
      end if;
      update :schema.ring
      set pass = ring.pass + cardinality(array_positions(_taken_tenants, ring.tenant)) / _weights[array_position(_tenants, ring.tenant)],
          ready = case
            when ring.kind <> all (_kinds) then true
            when (length(ring.kind) || ':' || ring.kind || ring.tenant) = any (_short) then false
            else exists (
              select from :schema.job
              where job.queue = _queue and job.kind = ring.kind and job.tenant = ring.tenant and job.state = 'available'
            )
          end
      where ring.queue = _queue and ring.tenant = any (_tenants) and ring.ready;
      if _taken_ids is not null then
        _virtual_time := greatest(_virtual_time, _served_pass);
      end if;
    end if;

    exit when cardinality(_ids) = _count;
    if _tenants is null then
      -- The ring is used up and the batch is not full. Walk all the way round, once, before saying so.
      exit when _walked_all;
      _walked_all := true;
      for _walk in select unnest(_kinds) as kind loop
        select walked.tenants into _found from :schema.walk_v1(_queue, _walk.kind, '', greatest(_hops, 10000)) as walked;
        _found_kinds := _found_kinds || array_fill(_walk.kind, array[cardinality(_found.tenants)]);
        _found_tenants := _found_tenants || _found.tenants;
      end loop;
      exit when cardinality(_found_kinds) = 0;
    end if;
  end loop;

  update :schema.ring_state set virtual_time = _virtual_time
  where ring_state.queue = _queue and ring_state.virtual_time <> _virtual_time;
  return _ids;
end $tenantry$;
