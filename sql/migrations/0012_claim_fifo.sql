-- breaking: no
-- The FIFO claim: oldest first whatever the tenant, side by side with other claims. The control, and right for queues of one tenant.

create function :schema.claim_fifo_v1(_queue text, _lease_id uuid, _kinds text[], _count integer) returns integer
language plpgsql
as $tenantry$
declare
  _quotas integer[];
  _claimed integer;
begin
  -- With several kinds, look first (without locking) how many of each are among the oldest, so that no row is locked in vain.
  -- What others have locked is not seen here: then a kind gives less than its quota, and the rest is taken without quotas.
  _quotas := array_fill(_count, array[cardinality(_kinds)]);
  if cardinality(_kinds) > 1 then
    select array_agg(coalesce(oldest.jobs, 0)::integer order by wanted.number) into _quotas
    from unnest(_kinds) with ordinality as wanted (kind, number)
    left join (
      select head.kind, count(*) as jobs
      from (
        select wanted.kind
        from unnest(_kinds) as wanted (kind)
        cross join lateral (
          select job.order_at, job.id
          from :schema.job
          where job.queue = _queue and job.kind = wanted.kind and job.state = 'available' and job.attempt >= 0
          order by job.order_at, job.id
          limit _count
        ) as job
        order by job.order_at, job.id
        limit _count
      ) as head
      group by head.kind
    ) as oldest on oldest.kind = wanted.kind;
  end if;

  _claimed := :schema.take_oldest_v1(_queue, _lease_id, _kinds, _quotas, _count);
  if cardinality(_kinds) > 1 and _claimed < _count then
    _claimed := _claimed + :schema.take_oldest_v1(_queue, _lease_id, _kinds,
      array_fill(_count, array[cardinality(_kinds)]), _count - _claimed);
  end if;
  return _claimed;
end $tenantry$;

-- Takes the oldest jobs of each kind up to its quota, and up to _count in all.
create function :schema.take_oldest_v1(_queue text, _lease_id uuid, _kinds text[], _quotas integer[], _count integer) returns integer
language plpgsql
as $tenantry$
declare
  -- Not when the statement began: it may have waited for the queue's lock, and rates count from here.
  _now timestamptz := clock_timestamp();
  _claimed integer;
begin
  update :schema.job
  set state = 'running', attempt = job.attempt + 1, lease_id = _lease_id, claimed_at = _now, charged = null
  where job.ctid = any (array(
    select oldest.ctid
    from unnest(_kinds, _quotas) as wanted (kind, quota)
    cross join lateral (
      select waiting.ctid
      from :schema.job as waiting
      where waiting.queue = _queue and waiting.kind = wanted.kind and waiting.state = 'available' and waiting.attempt >= 0
      order by waiting.order_at, waiting.id
      limit wanted.quota
      for no key update skip locked
    ) as oldest
    limit _count
  ));
  get diagnostics _claimed = row_count;
  return _claimed;
end $tenantry$;
