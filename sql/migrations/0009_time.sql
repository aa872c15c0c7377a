-- breaking: no
-- Charging time: in a queue whose charge is 'time' a turn costs its tenant the seconds for which the jobs run, not their number.
--
-- Problem.    The claim must charge at once, or the next one would serve the same tenant again; how long a job will run is known
--             only when it has.
-- Here.       A claim charges what jobs of the lane took so far, or else jobs of the kind, or else a second each, and notes the
--             charge with the job. Who ends the job (settling, giving back, reclaiming) appends a notice of what it took, and the
--             next claim that folds it in adds the difference to the pass of the tenant and learns from it.
-- Learning.   An exponentially weighted moving average: one more job counts a fifth, n more jobs count 1 - 0.8^n. So after a kind has become
--             ten times as long, ten jobs later nine tenths of the change are learned; until then the difference is added afterwards.
-- Invariant.  (T1) Once all notices are folded in, a tenant's pass has grown by the seconds that its jobs ran, divided by its weight.

-- What a job of each kind is expected to run, for tenants of which nothing is known.
create function :schema.expected_v1(_queue text, _kinds text[]) returns double precision[]
language plpgsql
as $tenantry$
begin
  return array(
    select greatest(0.001, coalesce(walk.seconds, 1)::double precision)
    from unnest(_kinds) with ordinality as wanted (kind, place)
    left join :schema.walk on walk.queue = _queue and walk.kind = wanted.kind
    order by wanted.place
  );
end $tenantry$;

-- Adds what was charged too little, and learns. The lanes are those of the notices, sorted by tenant and kind.
create function :schema.correct_v1(
  _queue text, _kinds text[], _tenants text[], _lane_kinds text[], _jobs integer[], _seconds double precision[], _surpluses double precision[]
) returns void
language plpgsql
as $tenantry$
begin
  -- Charged are all lanes of the tenant that are of the claim's kinds, as a turn does, but also those that have become idle: a
  -- tenant whose long job was its last must not come back as if it had cost little.
  update :schema.ring
  set pass = ring.pass + lane.surplus / lane.weight,
      seconds = case when lane.jobs > 0
                     then coalesce(ring.seconds + (lane.measured / lane.jobs - ring.seconds) * (1 - power(0.8, lane.jobs)), lane.measured / lane.jobs)
                     else ring.seconds end
  from (
    select own.ctid, owed.surplus, owed.weight, coalesce(own_notice.jobs, 0) as jobs, own_notice.seconds as measured
    from (
      select given.tenant, sum(given.surplus) as surplus, coalesce(min(tenant.weight), 1) as weight
      from unnest(_tenants, _surpluses) as given (tenant, surplus)
      left join :schema.tenant on tenant.queue = _queue and tenant.tenant = given.tenant
      group by given.tenant
    ) as owed
    cross join lateral (
      select ring.ctid, ring.kind from :schema.ring where ring.queue = _queue and ring.tenant = owed.tenant
      offset 0
    ) as own
    left join lateral (
      select given.jobs, given.seconds
      from unnest(_tenants, _lane_kinds, _jobs, _seconds) as given (tenant, kind, jobs, seconds)
      where given.tenant = owed.tenant and given.kind = own.kind
    ) as own_notice on true
    where own.kind = any (_kinds)
  ) as lane
  where ring.ctid = lane.ctid;

  update :schema.walk
  set seconds = coalesce(walk.seconds + (kind.seconds / kind.jobs - walk.seconds) * (1 - power(0.8, kind.jobs)), kind.seconds / kind.jobs)
  from (
    select given.kind, sum(given.jobs)::integer as jobs, sum(given.seconds) as seconds
    from unnest(_lane_kinds, _jobs, _seconds) as given (kind, jobs, seconds)
    group by given.kind
  ) as kind
  where walk.queue = _queue and walk.kind = kind.kind and kind.jobs > 0;

  update :schema.group_ring as node
  set pass = node.pass + owed.surplus / owed.weight
  from (
    select tenant.grp, sum(given.surplus) as surplus, coalesce(min(tenant_group.weight), 1) as weight
    from unnest(_tenants, _surpluses) as given (tenant, surplus)
    join :schema.tenant on tenant.queue = _queue and tenant.tenant = given.tenant
    left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = tenant.grp
    where tenant.grp is not null
    group by tenant.grp
  ) as owed
  where node.queue = _queue and node.grp = owed.grp and node.kind = any (_kinds);
end $tenantry$;

-- What a job of each of these lanes is charged. _expected is for the kinds of the claim. Names and costs, in one order.
create function :schema.costs_v1(
  _queue text, _kinds text[], _expected double precision[], _tenants text[], _lane_kinds text[], out names text[], out costs real[]
)
language plpgsql
as $tenantry$
begin
  select array_agg(length(lane.kind) || ':' || lane.kind || lane.tenant), array_agg(lane.cost)
  into names, costs
  from (
    select given.tenant, given.kind, greatest(0.001, coalesce(own.seconds, _expected[array_position(_kinds, given.kind)]))::real as cost
    from unnest(_tenants, _lane_kinds) as given (tenant, kind)
    left join :schema.ring as own on own.queue = _queue and own.tenant = given.tenant and own.kind = given.kind
  ) as lane;
end $tenantry$;
