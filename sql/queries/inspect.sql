-- name: job
-- One job by its id, waiting, running or finished. No rows: it was never committed, or its history is gone.
select id, queue, kind, tenant, key, state::text as state, payload, attempt, max_attempts, priority,
       pg_catalog.date_part('epoch', run_at) as run_at_seconds, pg_catalog.date_part('epoch', created_at) as created_at_seconds,
       null::double precision as finalized_at_seconds, errors
from :schema.job where id = $1::bigint
union all
select id, queue, kind, tenant, key, state, payload, attempt, max_attempts, priority,
       pg_catalog.date_part('epoch', run_at), pg_catalog.date_part('epoch', created_at), pg_catalog.date_part('epoch', finalized_at), errors
from :schema.job_history where id = $1::bigint;
