-- name: cancel_batch
-- $1 queue  $2 filter  $3 reason  $4 jobs at most  $5 cursor. One row; a cursor of null says that nothing is left. So for the others.
select changed, cursor from :schema.cancel_batch_v1($1::text, $2::jsonb, $3::text, $4::integer, $5::jsonb);

-- name: purge_batch
-- $1 queue  $2 filter  $3 jobs at most  $4 cursor
select changed, cursor from :schema.purge_batch_v1($1::text, $2::jsonb, $3::integer, $4::jsonb);

-- name: purge_history
-- $1 queue  $2 filter  $3 ended by then, as text; null for now  $4 jobs at most. The moment that "now" was, for the next batch.
select :schema.purge_history_v1($1::text, $2::jsonb, moment.until, $4::integer) as changed, pg_catalog.to_json(moment.until) #>> '{}' as until
from (values (coalesce($3::timestamptz, pg_catalog.clock_timestamp()))) as moment (until);

-- name: move_batch
-- $1 queue  $2 to queue  $3 filter  $4 jobs at most  $5 cursor
select changed, cursor from :schema.move_batch_v1($1::text, $2::text, $3::jsonb, $4::integer, $5::jsonb);

-- name: await_claim
-- $1 queue
select :schema.await_claim_v1($1::text);

-- name: occupancy
-- $1 queue  $2 tenant or null  $3 kind or null  $4 counted no further than this
select :schema.count_running_v1($1::text, $2::text, $3::text, $4::integer) as running,
       :schema.count_waiting_v1($1::text, $2::text, $3::text, $4::integer) as waiting;
