-- breaking: no
-- Groups: the groups of a queue and its tenants without one share first, each by its weight; what a group gets is shared among its
-- tenants, each by its own. So one that splits its backlog over a hundred tenants gains nothing.
--
-- Here.       Start-time fair queueing twice: a group has a node for each kind in group_ring, which stands in the order of the passes
--             together with the lanes of tenants without a group. A turn of the group is given out among its tenants in the same way,
--             by passes that count only among them.
-- Invariant.  (G1) When a claim commits, a node is ready exactly if its group has a ready lane of its kind.

-- Virtual time for a lane or node of _kind that becomes ready, among the lanes of a group or, for '', among the groups and the tenants
-- without one: where those that wait begin; or else, where the service of the past ended. What waits in another kind that has a limit
-- or is paused does not count: it stands still while the others are served, and whoever began there would have credit.
create function :schema.floor_v1(_queue text, _grp text, _kind text, _kinds text[]) returns double precision
language plpgsql
as $tenantry$
declare
  _floor double precision;
  -- What is of a kind that the claim does not ask for is measured against its own.
  _measured text[] := case when _kind = any (_kinds) then _kinds else array[_kind] end;
begin
  select min(head.pass) into _floor
  from unnest(_measured) as wanted (kind)
  cross join lateral (
    (select ring.pass from :schema.ring
     where ring.queue = _queue and ring.grp = _grp and ring.kind = wanted.kind and ring.ready
     order by ring.pass limit 1)
    union all
    (select node.pass from :schema.group_ring as node
     where _grp = '' and node.queue = _queue and node.kind = wanted.kind and node.ready
     order by node.pass limit 1)
  ) as head
  where wanted.kind = _kind or not exists (select from :schema.kind where kind.queue = _queue and kind.kind = wanted.kind);
  if _floor is null then
    select max(tail.pass) into _floor
    from unnest(_measured) as wanted (kind)
    cross join lateral (
      (select ring.pass from :schema.ring
       where ring.queue = _queue and ring.grp = _grp and ring.kind = wanted.kind and not ring.ready and ring.parked_until is null
       order by ring.pass desc limit 1)
      union all
      (select node.pass from :schema.group_ring as node
       where _grp = '' and node.queue = _queue and node.kind = wanted.kind and not node.ready
       order by node.pass desc limit 1)
    ) as tail;
  end if;
  return coalesce(_floor, 0);
end $tenantry$;

-- Makes the nodes of these groups ready or not, as their lanes are. One that becomes ready starts where those that wait begin.
create function :schema.refresh_groups_v1(_queue text, _kinds text[], _groups text[]) returns void
language plpgsql
as $tenantry$
begin
  insert into :schema.group_ring as node (queue, grp, kind, pass, ready)
  select _queue, place.grp, place.kind,
         -- As with tenants: service of the kinds of the claim counts together.
         greatest(:schema.floor_v1(_queue, '', place.kind, _kinds), (select max(own.pass) from :schema.group_ring as own
                           where own.queue = _queue and own.grp = place.grp and (own.kind = place.kind or own.kind = any (_kinds)))),
         place.ready
  from (
    select given.grp, kind.kind,
           exists (select from :schema.ring
                   where ring.queue = _queue and ring.grp = given.grp and ring.kind = kind.kind and ring.ready
                   order by ring.pass limit 1) as ready
    from (select distinct unnest(_groups) as grp) as given
    cross join lateral (
      select unnest(_kinds) as kind
      union
      select walk.kind from :schema.walk where walk.queue = _queue and walk.kind <> ''
    ) as kind
  ) as place
  left join :schema.group_ring as present on present.queue = _queue and present.grp = place.grp and present.kind = place.kind
  where place.ready is distinct from coalesce(present.ready, false)
  order by place.grp, place.kind
  on conflict (queue, grp, kind) do update
  set ready = excluded.ready,
      pass = case when excluded.ready then excluded.pass else node.pass end;
end $tenantry$;

-- Charges the groups of the tenants served: the ready nodes of the kinds of the claim alike.
create function :schema.charge_groups_v1(_queue text, _kinds text[], _groups text[], _charges double precision[]) returns void
language plpgsql
as $tenantry$
begin
  update :schema.group_ring as node
  set pass = node.pass + served.charge / coalesce(tenant_group.weight, 1)
  from (
    select given.grp, sum(given.charge) as charge
    from unnest(_groups, _charges) as given (grp, charge)
    where given.grp <> ''
    group by given.grp
  ) as served
  left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = served.grp
  where node.queue = _queue and node.grp = served.grp and node.kind = any (_kinds) and node.ready;
end $tenantry$;
