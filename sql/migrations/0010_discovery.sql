-- breaking: no
-- Discovery: which lanes (tenant and kind) of a queue have work, without enqueue or settle ever touching a row of the ring. Everything
-- here runs inside a claim that holds the queue's lock, so nobody else writes the ring.
--
-- Signals.    Enqueue appends a signal, which the next claim folds in. A signal can be missing when
--             a lane was emptied while the enqueue was in flight, so a walk along the claim index heals: a few probes a
--             claim, and all the way round before a claim reports that there is less than was asked for.
-- Heads.      The index entries of jobs that are gone stay until a vacuum, or for as long as an old snapshot needs them, and a
--             scan from the start of a lane would step over all of them at every claim. So a lane remembers how far it was
--             taken, and is looked through from there. What arrives before that place (a higher priority, a release, a commit
--             that came late) is signalled, or found by the walk, and sets the lane back.
--
-- Times are taken into variables, since PostgreSQL does not use a volatile function as an index condition.

-- Moves scheduled jobs that are due into the claim index, the longest due first, at most 500 of each kind (as many as a claim
-- may ask for), and signals their lanes. Answers with how many it moved.
create function :schema.promote_v1(_queue text, _kinds text[]) returns integer
language plpgsql
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _promoted integer;
  _due_kinds text[];
  _due_tenants text[];
  _due_order_ats timestamptz[];
  _due_keys text[];
begin
  with promoted as (
    update :schema.job set state = case when job.key is null then cast('available' as :schema.job_state) else 'blocked' end
    where job.state = 'scheduled' and job.id = any (array(
      select due.id
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select job.id
        from :schema.job
        where job.queue = _queue and job.kind = wanted.kind and job.state = 'scheduled' and job.attempt >= 0 and job.run_at <= _now
        order by job.run_at, job.id
        limit 500
        for no key update skip locked
      ) as due
    ))
    returning job.kind, job.tenant, job.key, job.order_at
  )
  select count(*), array_agg(promoted.kind) filter (where promoted.key is null), array_agg(promoted.tenant) filter (where promoted.key is null),
         array_agg(promoted.order_at) filter (where promoted.key is null), array_agg(promoted.key) filter (where promoted.key is not null)
  into _promoted, _due_kinds, _due_tenants, _due_order_ats, _due_keys
  from promoted;
  if _due_kinds is not null then
    perform :schema.signal_v1(array_fill(_queue, array[cardinality(_due_kinds)]), _due_kinds, _due_tenants, _due_order_ats);
  end if;
  if _due_keys is not null then
    perform :schema.notice_keys_v1(array_fill(_queue, array[cardinality(_due_keys)]), _due_keys);
  end if;
  return _promoted;
end $tenantry$;

-- When one tenant has more that is due than a claim promotes, the others must not wait behind it here either: up to 64 tenants of
-- each kind that have scheduled jobs, from where the last such walk stopped, and up to 8 due jobs of each.
create function :schema.promote_by_tenant_v1(_queue text, _kinds text[]) returns void
language plpgsql
as $tenantry$
declare
  _now timestamptz := clock_timestamp();
  _walk record;
  _tenants text[];
  _due_tenants text[];
  _due_order_ats timestamptz[];
  _due_keys text[];
begin
  for _walk in
    select walk.kind, walk.due_tenant from :schema.walk where walk.queue = _queue and walk.kind = any (_kinds)
  loop
    with recursive hop as (
      select _walk.due_tenant as tenant
      union all
      select next.tenant
      from hop
      cross join lateral (
        select job.tenant
        from :schema.job
        where job.queue = _queue and job.kind = _walk.kind and job.state = 'scheduled' and job.tenant > hop.tenant
        order by job.tenant, job.run_at, job.id
        limit 1
      ) as next
    )
    select array_agg(hop.tenant) into _tenants from (select hop.tenant from hop limit 65) as hop;
    update :schema.walk
    set due_tenant = case when cardinality(_tenants) < 65 then '' else _tenants[65] end
    where walk.queue = _queue and walk.kind = _walk.kind;

    with promoted as (
      update :schema.job set state = case when job.key is null then cast('available' as :schema.job_state) else 'blocked' end
      where job.state = 'scheduled' and job.id = any (array(
        select due.id
        from unnest(_tenants[2:]) as hop (tenant)
        cross join lateral (
          select job.id
          from :schema.job
          where job.queue = _queue and job.kind = _walk.kind and job.tenant = hop.tenant and job.state = 'scheduled'
            and job.run_at <= _now
          order by job.run_at, job.id
          limit 8
          for no key update skip locked
        ) as due
      ))
      returning job.tenant, job.key, job.order_at
    )
    select array_agg(promoted.tenant) filter (where promoted.key is null), array_agg(promoted.order_at) filter (where promoted.key is null),
           array_agg(promoted.key) filter (where promoted.key is not null)
    into _due_tenants, _due_order_ats, _due_keys
    from promoted;
    if _due_keys is not null then
      perform :schema.notice_keys_v1(array_fill(_queue, array[cardinality(_due_keys)]), _due_keys);
    end if;
    if _due_tenants is not null then
      perform :schema.signal_v1(array_fill(_queue, array[cardinality(_due_tenants)]),
        array_fill(_walk.kind, array[cardinality(_due_tenants)]), _due_tenants, _due_order_ats);
    end if;
  end loop;
end $tenantry$;

-- Makes lanes ready, to be looked through from where something was seen, if that is before the place they were taken to. One that
-- is parked stays so. _kinds are those of the claim, over which a busy period is measured.
create function :schema.enter_ring_v1(
  _queue text, _kinds text[], _lane_kinds text[], _lane_tenants text[], _lane_order_ats timestamptz[]
) returns void
language plpgsql
as $tenantry$
declare
  _groups text[];
begin
  with lane as (
    select given.kind, given.tenant, min(given.order_at) as order_at,
           coalesce((select tenant.grp from :schema.tenant where tenant.queue = _queue and tenant.tenant = given.tenant), '') as grp
    from unnest(_lane_kinds, _lane_tenants, _lane_order_ats) as given (kind, tenant, order_at)
    group by given.kind, given.tenant
  ),
  place as materialized (
    select distinct_place.kind, distinct_place.grp, :schema.floor_v1(_queue, distinct_place.grp, distinct_place.kind, _kinds) as floor
    from (select distinct lane.kind, lane.grp from lane) as distinct_place
  ),
  entered as (
    insert into :schema.ring as ring (queue, tenant, kind, grp, pass, ready, head_at, head_id)
    select _queue, lane.tenant, lane.kind, lane.grp,
           greatest(place.floor, (select max(own.pass) from :schema.ring as own
             where own.queue = _queue and own.tenant = lane.tenant and own.grp = lane.grp and own.kind = any (_kinds))),
           true, lane.order_at, 0
    from lane
    join place on place.kind = lane.kind and place.grp = lane.grp
    on conflict (queue, tenant, kind) do update
    set ready = ring.parked_until is null,
        grp = case when ring.ready or ring.parked_until is not null then ring.grp else excluded.grp end,
        pass = case when ring.ready or ring.parked_until is not null then ring.pass else excluded.pass end,
        entered_at = case when ring.ready or ring.parked_until is not null then ring.entered_at else excluded.entered_at end,
        head_at = least(ring.head_at, excluded.head_at),
        head_id = case when ring.head_at < excluded.head_at then ring.head_id else 0 end
    returning ring.grp
  )
  select array_agg(distinct entered.grp) filter (where entered.grp <> '') into _groups from entered;
  if _groups is not null then
    perform :schema.refresh_groups_v1(_queue, _kinds, _groups);
  end if;
end $tenantry$;

-- Begins anew with kinds that have no walk: nobody has asked for them before, or the unlogged tables were lost, or the strategy or the
-- charge was changed. What the ring still holds of them was counted in another coin, and so were the charges of the jobs that run and
-- what was measured: corrected by them, a tenant would be ahead or behind by what it was never charged.
create function :schema.begin_v1(_queue text, _kinds text[], _begun text[]) returns void
language plpgsql
as $tenantry$
begin
  delete from :schema.ring where ring.queue = _queue and ring.kind = any (_begun);
  delete from :schema.group_ring as node where node.queue = _queue and node.kind = any (_begun);
  delete from :schema.notice where notice.queue = _queue and notice.kind = any (_begun);
  update :schema.job set charged = null
  where job.ctid = any (array(
    select running.ctid
    from :schema.lease
    cross join lateral (
      select own.ctid from :schema.job as own
      where own.lease_id = lease.id and own.state = 'running' and own.charged is not null and own.kind = any (_begun)
      -- One that is being settled at this moment has told already.
      for no key update skip locked
    ) as running
    where lease.queue = _queue
  ));
  insert into :schema.walk (queue, kind, tenant, walk_at)
  select _queue, begun.kind, '', '-infinity' from unnest(_begun) as begun (kind)
  on conflict (queue, kind) do nothing;
  perform :schema.walk_v1(_queue, _kinds, _begun, 5000, true);
end $tenantry$;

-- Folds up to 256 signals of the kinds into the ring.
create function :schema.fold_signals_v1(_queue text, _kinds text[]) returns void
language plpgsql
as $tenantry$
declare
  _lane_kinds text[];
  _lane_tenants text[];
  _lane_order_ats timestamptz[];
begin
  with folded as (
    delete from :schema.signal
    where signal.ctid = any (array(
      select head.ctid
      from unnest(_kinds) as wanted (kind)
      cross join lateral (
        select oldest.ctid
        from :schema.signal as oldest
        where oldest.queue = _queue and oldest.kind = wanted.kind
        order by oldest.id
        limit 256
      ) as head
      limit 256
    ))
    returning signal.kind, signal.tenant, signal.order_at
  )
  select array_agg(folded.kind), array_agg(folded.tenant), array_agg(folded.order_at)
  into _lane_kinds, _lane_tenants, _lane_order_ats
  from folded;
  if _lane_kinds is not null then
    perform :schema.enter_ring_v1(_queue, _kinds, _lane_kinds, _lane_tenants, _lane_order_ats);
  end if;
end $tenantry$;

-- Walks along the claim index of each kind, from where its last walk stopped or from the start: up to _hops tenants in all that
-- have available jobs, one index probe each, and a few of each kind in any case. Answers with how many lanes it made ready or set
-- back. Having come round, a walk rests; a long one that found nothing, because the tenants that have jobs are parked, for longer.
create function :schema.walk_v1(
  _queue text, _kinds text[], _walked_kinds text[], _hops_in_all integer, _from_start boolean
) returns integer
language plpgsql
as $tenantry$
declare
  _hops integer := greatest(8, _hops_in_all / greatest(1, cardinality(_walked_kinds)));
  _kind text;
  _from text;
  _tenants text[];
  _order_ats timestamptz[];
  _ids bigint[];
  _came_round boolean;
  _stopped_at text;
  _walked integer;
  _lane_kinds text[] := '{}';
  _lane_tenants text[] := '{}';
  _lane_order_ats timestamptz[] := '{}';
begin
  foreach _kind in array _walked_kinds loop
    _from := '';
    if not _from_start then
      select walk.tenant into _from from :schema.walk where walk.queue = _queue and walk.kind = _kind;
    end if;
    with recursive hop as (
      select _from collate "C" as tenant, null::timestamptz as order_at, null::bigint as id
      union all
      select next.tenant, next.order_at, next.id
      from hop
      cross join lateral (
        select job.tenant, job.order_at, job.id
        from :schema.job
        where job.queue = _queue and job.kind = _kind and job.state = 'available' and job.tenant > hop.tenant
        order by job.tenant, job.order_at, job.id
        limit 1
      ) as next
    )
    select array_agg(hop.tenant), array_agg(hop.order_at), array_agg(hop.id) into _tenants, _order_ats, _ids
    from (select hop.tenant, hop.order_at, hop.id from hop limit _hops + 1) as hop;
    _came_round := cardinality(_tenants) <= _hops;
    _stopped_at := _tenants[_hops + 1];
    _walked := cardinality(_tenants) - 1;

    select array_agg(found.tenant), array_agg(found.order_at) into _tenants, _order_ats
    from unnest(_tenants, _order_ats, _ids) as found (tenant, order_at, id)
    where found.id is not null and not exists (
      select from :schema.ring
      where ring.queue = _queue and ring.tenant = found.tenant and ring.kind = _kind
        and case when ring.ready or ring.parked_until is not null then (ring.head_at, ring.head_id) <= (found.order_at, found.id) else false end
    );
    if _tenants is not null then
      _lane_tenants := _lane_tenants || _tenants;
      _lane_order_ats := _lane_order_ats || _order_ats;
      _lane_kinds := _lane_kinds || array_fill(_kind, array[cardinality(_tenants)]);
    end if;

    -- Makes no row: one that somebody has just removed was to make the next claim begin anew.
    update :schema.walk
    set tenant = case when _came_round then '' else _stopped_at end,
        -- Under load it goes on a hundred times a second and not at every claim: that is most of what it costs.
        walk_at = clock_timestamp() + case when _came_round then interval '250 milliseconds' else interval '10 milliseconds' end,
        rest_until = case when not _from_start then walk.rest_until
                          -- A probe takes some 5 µs: so what finds nothing takes at most a twentieth of the time.
                          when _walked > 100 and _tenants is null then clock_timestamp() + _walked * interval '100 microseconds'
                          else '-infinity' end
    where walk.queue = _queue and walk.kind = _kind;
  end loop;
  if cardinality(_lane_kinds) > 0 then
    perform :schema.enter_ring_v1(_queue, _kinds, _lane_kinds, _lane_tenants, _lane_order_ats);
  end if;
  return cardinality(_lane_kinds);
end $tenantry$;

-- Folds the notices for claims of the kinds into the ring, those for all kinds first, for among them are changes of settings: 256 at
-- a time, and up to 2,048, or a limit that was lowered would act later than at the next claim where more than that happens between
-- two. In a queue that is not fair only those of keys mean anything.
create function :schema.fold_notices_v1(_queue text, _kinds text[]) returns void
language plpgsql
as $tenantry$
declare
  _tenants text[];
  _lifted text[];
  _keys text[];
  _measured boolean;
  _folded integer;
  _lane_tenants text[];
  _lane_kinds text[];
  _jobs integer[];
  _seconds double precision[];
  _surpluses double precision[];
begin
  for _round in 1..8 loop
    with folded as (
      delete from :schema.notice
      where notice.ctid = any (array(
        select head.ctid
        from unnest(''::text || _kinds) as wanted (kind)
        cross join lateral (
          select oldest.ctid from :schema.notice as oldest
          where oldest.queue = _queue and oldest.kind = wanted.kind
          order by oldest.id
          limit 256
        ) as head
        limit 256
      ))
      returning notice.*
    ),
    measured as (
      select folded.tenant, folded.kind, sum(folded.jobs)::integer as jobs, sum(folded.seconds) as seconds, sum(folded.surplus) as surplus
      from folded
      where folded.jobs is not null
      group by folded.tenant, folded.kind
    )
    select array(select distinct folded.tenant from folded where folded.jobs is null and folded.kind = '' and folded.tenant is not null),
           array(select distinct folded.kind from folded where folded.jobs is null and folded.kind <> ''),
           array(select distinct folded.key from folded where folded.key is not null),
           (select count(*) from folded),
           exists (select from measured),
           array(select measured.tenant from measured order by measured.tenant, measured.kind),
           array(select measured.kind from measured order by measured.tenant, measured.kind),
           array(select measured.jobs from measured order by measured.tenant, measured.kind),
           array(select measured.seconds from measured order by measured.tenant, measured.kind),
           array(select measured.surplus from measured order by measured.tenant, measured.kind)
    into _tenants, _lifted, _keys, _folded, _measured, _lane_tenants, _lane_kinds, _jobs, _seconds, _surpluses;
    -- Not what a settling tells that began before the charge was changed.
    if _measured and (select queue.charge = 'time' from :schema.queue where queue.name = _queue) then
      perform :schema.correct_v1(_queue, _kinds, _lane_tenants, _lane_kinds, _jobs, _seconds, _surpluses);
    end if;
    if cardinality(_lifted) > 0 then
      perform :schema.lift_v1(_queue, _kinds, _lifted);
    end if;
    if cardinality(_tenants) > 0 then
      perform :schema.unpark_v1(_queue, _kinds, _tenants);
    end if;
    if cardinality(_keys) > 0 then
      perform :schema.admit_v1(_queue, _keys);
    end if;
    exit when _folded < 256;
  end loop;
end $tenantry$;
