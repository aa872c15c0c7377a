-- name: tenant_numbers
-- $1 queue  $2 how many waiting jobs to count at most  $3 minutes. One row for each tenant.
select tenant, grp, weight, paused, parked, concurrency, rate_per_second, available, blocked, scheduled, capped, running, oldest_seconds,
       pass, pass_lag, starved, noisy, started, completed, failed, busy_seconds, received_share, entitled_share,
       wait_p50_ms, wait_p95_ms, wait_p99_ms, run_p50_ms, run_p95_ms, run_p99_ms,
       objective_wait_ms, objective_share, objective_reached, objective_met
from :schema.tenants_v1($1::text, $2::integer, $3::integer);

-- name: queue_numbers
-- $1 queue, or null for all  $2 how many waiting jobs to count at most in each  $3 minutes. One row for each queue.
select queue, strategy, charge, paused, workers, slots, tenants, waiting_tenants, available, blocked, scheduled, capped, running,
       oldest_seconds, started, completed, failed, busy_seconds, wait_p50_ms, wait_p95_ms, wait_p99_ms, run_p50_ms, run_p95_ms, run_p99_ms,
       starved, noisy, objectives_met, objectives_missed, jain
from :schema.queues_v1($1::text, $2::integer, $3::integer);
