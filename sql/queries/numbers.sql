-- name: beat
-- $1 worker_id  $2 queues  $3 kinds  $4 slots  $5 running  $6 milliseconds since it started. One row: the database's time.
select :schema.beat_v1($1::text, $2::text[], $3::text[], $4::integer, $5::integer, $6::double precision) as now_ms;

-- name: leave
-- $1 worker_id
select :schema.leave_v1($1::text);

-- name: record_numbers
-- $1 queue  $2 minute  $3 worker_id  $4 part  $5 tenants  $6 started  $7 completed  $8 failed  $9 busy seconds
-- $10 to $12 places, buckets and numbers of the waits  $13 to $15 those of the runs
select :schema.record_numbers_v1($1::text, $2::bigint, $3::text, $4::integer, $5::text[], $6::integer[], $7::integer[], $8::integer[], $9::real[],
  $10::smallint[], $11::smallint[], $12::integer[], $13::smallint[], $14::smallint[], $15::integer[]);

-- name: prune_numbers
-- $1 rows at most
select :schema.prune_numbers_v1($1::integer) as forgotten;
