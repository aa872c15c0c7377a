-- What `bench` reads of the server.

-- name: without_autovacuum
-- Autovacuum would come in the middle of some runs and not of others. It is done by hand instead, before each run.
do $$
declare
  _name text;
begin
  for _name in
    select class.oid::regclass from pg_class as class
    where class.relnamespace = to_regnamespace(quote_ident(:schema_literal)) and class.relkind = 'r'
  loop
    execute 'alter table ' || _name || ' set (autovacuum_enabled = off)';
  end loop;
end $$;

-- name: wal_position
-- In bytes since the beginning.
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as bytes;

-- name: buffers
-- Shared buffers that this database has looked at, found or read.
select (blks_hit + blks_read)::text as buffers from pg_stat_database where datname = current_database();

-- name: flush_statistics
-- Makes this session report its statistics now and not within the next second. From PostgreSQL 15.
select pg_stat_force_next_flush();

-- name: backend
-- This session: its process, and the port of the client if it came through TCP.
select pg_backend_pid()::text as pid, inet_client_port()::text as port;

-- name: backends_left
-- How many sessions of an application name are still there.
select count(*)::text as sessions from pg_stat_activity where application_name = $1::text;

-- name: server_settings
-- What has an influence on the figures.
select name, current_setting(name) as value from pg_settings
where name in ('server_version', 'server_version_num', 'autovacuum', 'checkpoint_timeout', 'fsync', 'full_page_writes', 'huge_pages_status',
  'jit', 'max_connections', 'max_wal_size', 'shared_buffers', 'synchronous_commit', 'wal_compression', 'wal_level', 'work_mem')
order by name;

-- name: checkpoint
checkpoint;
