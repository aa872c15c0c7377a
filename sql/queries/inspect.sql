-- name: job
-- One job by its id, waiting, running or finished. No rows: it was never committed, or its history is gone.
select id, queue, kind, tenant, state::text as state, payload, attempt, max_attempts, priority,
       pg_catalog.date_part('epoch', run_at) as run_at_seconds, pg_catalog.date_part('epoch', created_at) as created_at_seconds,
       null::double precision as finalized_at_seconds, errors
from :schema.job where id = $1::bigint
union all
select id, queue, kind, tenant, state, payload, attempt, max_attempts, priority,
       pg_catalog.date_part('epoch', run_at), pg_catalog.date_part('epoch', created_at), pg_catalog.date_part('epoch', finalized_at), errors
from :schema.job_history where id = $1::bigint;

-- name: cancel
-- Cancels job $1 if it waits; answers with its id. No rows: it runs, is finished, or does not exist.
with cancelled as (
  delete from :schema.job
  where job.id = $1::bigint and job.state <> 'running'
  returning job.*
),
kept as (
  insert into :schema.job_history (id, queue, kind, tenant, state, priority, attempt, max_attempts, run_at, created_at,
    claimed_at, finalized_at, payload, errors, retention)
  select cancelled.id, cancelled.queue, cancelled.kind, cancelled.tenant, 'cancelled', cancelled.priority, cancelled.attempt,
    cancelled.max_attempts, cancelled.run_at, cancelled.created_at, cancelled.claimed_at, pg_catalog.clock_timestamp(),
    case when queue.history = 'keep-without-payload' then null else cancelled.payload end,
    coalesce(cancelled.errors, '[]') || pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object(
      'attempt', cancelled.attempt, 'name', 'Cancelled', 'message', $2::text,
      'at', pg_catalog.to_char(pg_catalog.clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))),
    'settled'
  from cancelled
  left join :schema.queue on queue.name = cancelled.queue
  where queue.history is distinct from 'none'
)
select cancelled.id from cancelled;

-- name: queues
-- Every queue that has jobs or settings, with bounded counts: at most 10,000 of each state are counted.
with recursive named as (
  (select job.queue from :schema.job order by job.queue limit 1)
  union all
  select (select job.queue from :schema.job where job.queue > named.queue order by job.queue limit 1)
  from named where named.queue is not null
)
select known.name, coalesce(queue.strategy, 'fair') as strategy, coalesce(queue.history, 'keep') as history
from (select queue as name from named where queue is not null union select name from :schema.queue) as known
left join :schema.queue on queue.name = known.name
order by known.name;
