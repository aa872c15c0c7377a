-- Functions are named with their schema: the session's search_path may find look-alikes first.

-- name: enqueue_many
-- Inserts jobs given as parallel arrays; ids in the same order.
-- $1 queues  $2 kinds  $3 tenants  $4 payloads  $5 priorities  $6 run_ats  $7 delays_ms  $8 max_attempts  $9 keys
select pg_catalog.unnest(:schema.enqueue_many_v1(
  $1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::timestamptz[], $7::double precision[], $8::smallint[], $9::text[]))::text as id;

-- name: claim
-- $1 queue  $2 lease_id  $3 worker_id  $4 kinds  $5 count  $6 lease_ms  $7 listening
-- One row: how many were claimed, how their order is to be read, whether limits hold back more, and when to look again.
select claimed, interleave, held_back, next_due_ms
from :schema.claim_v1($1::text, $2::uuid, $3::text, $4::text[], $5::integer, $6::double precision, $7::boolean);

-- name: claimed
-- The jobs that run under lease $1, the oldest first. No rows: the lease was reclaimed, or nothing was claimed.
select id, queue, kind, tenant, key, payload, attempt, max_attempts, priority, run_at_seconds, created_at_seconds, wait_seconds, errors
from :schema.claimed_v1($1::uuid);

-- name: extend
-- Prolongs leases $1 to $2 milliseconds from now. A lease that is missing in the answer was reclaimed.
select extended.id from :schema.extend_v1($1::uuid[], $2::double precision) as extended (id);

-- name: reclaim
-- $1 leases at most
select leases, retried, discarded, next_due_ms from :schema.reclaim_v1($1::integer);

-- name: complete
-- $1 queue  $2 ids  $3 lease_ids  $4 finished leases. One row: the ids whose lease was lost.
select :schema.complete_v1($1::text, $2::bigint[], $3::uuid[], $4::uuid[]) as lost;

-- name: requeue
-- $1 queue  $2 ids  $3 lease_ids  $4 outcomes  $5 delays_ms  $6 errors  $7 finished leases. One row: the ids whose lease was lost.
select :schema.requeue_v1(
  $1::text, $2::bigint[], $3::uuid[], $4::text[], $5::double precision[], $6::jsonb[], $7::uuid[]) as lost;

-- name: finalize
-- $1 queue  $2 ids  $3 lease_ids  $4 states  $5 errors  $6 finished leases. One row: the ids whose lease was lost.
select :schema.finalize_v1(
  $1::text, $2::bigint[], $3::uuid[], $4::text[], $5::jsonb[], $6::uuid[]) as lost;

-- name: cancel
-- $1 id  $2 reason. One row: whether a job that waits was cancelled.
select :schema.cancel_v1($1::bigint, $2::text) as cancelled;
