-- name: ensure_history
-- Creates history partitions up to $1 days ahead.
select :schema.ensure_history_v1($1::integer) as created;

-- name: prune_history
-- Drops one partition past retention ($1 days for completed and cancelled, $2 for discarded); null when there is none.
select :schema.prune_history_v1($1::integer, $2::integer) as dropped;

-- name: prune_ring
-- Forgets up to $1 idle lanes whose pass gives them nothing any more, and waiters that are gone.
select :schema.prune_ring_v1($1::integer) as forgotten;

-- name: heal_leases
-- Brings back rows of leases that running jobs name and that are not there.
select :schema.heal_leases_v1() as healed;

-- name: channel
select :schema.channel_v1() as channel;
