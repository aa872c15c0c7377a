-- breaking: no
-- Finished jobs, partitioned by retention class and then by day of finishing (UTC), so that retention drops tables.

create table :schema.job_history (
  id bigint not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  tenant text collate "C" not null,
  key text collate "C",
  state text not null,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  run_at timestamptz not null,
  created_at timestamptz not null,
  claimed_at timestamptz,
  finalized_at timestamptz not null,
  payload json,
  errors jsonb,
  retention text not null,
  constraint job_history_state_is_final check (state in ('completed', 'cancelled', 'discarded')),
  constraint job_history_retention_follows_state check (retention = case state when 'discarded' then 'discarded' else 'settled' end)
) partition by list (retention);

create table :schema.job_history_settled partition of :schema.job_history for values in ('settled') partition by range (finalized_at);
create table :schema.job_history_discarded partition of :schema.job_history for values in ('discarded') partition by range (finalized_at);
create index job_history_id on :schema.job_history (id);
create index job_history_tenant on :schema.job_history (queue, tenant, finalized_at);

comment on table :schema.job_history is 'Finished jobs. Discarded ones always keep their payload and are kept longer, or they could not be run again.';

-- Creates the missing partitions from today to _days ahead. ATTACH takes no exclusive lock on the parent, CREATE … PARTITION OF would.
create function :schema.ensure_history_v1(_days integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '3s' as $tenantry$
declare
  _class text;
  _day date;
  _name text;
  _created integer := 0;
begin
  -- One at a time: two workers that start together would make the same table.
  perform pg_advisory_xact_lock((quote_ident(:schema_literal) || '.job_history')::regclass::oid::integer, 0);
  foreach _class in array array['settled', 'discarded'] loop
    for _day in select generate_series(0, _days)::integer + (now() at time zone 'UTC')::date loop
      _name := 'job_history_' || _class || '_' || to_char(_day, 'YYYYMMDD');
      if to_regclass(format('%I.%I', :schema_literal, _name)) is null then
        execute format('create table %1$I.%2$I (like %1$I.job_history including defaults including constraints)', :schema_literal, _name);
        execute format('alter table %1$I.%2$I attach partition %1$I.%3$I for values from (%4$L) to (%5$L)',
          :schema_literal, 'job_history_' || _class, _name, (_day::text || ' 00:00:00+00'), ((_day + 1)::text || ' 00:00:00+00'));
        _created := _created + 1;
      end if;
    end loop;
  end loop;
  return _created;
end $tenantry$;

-- Drops at most one partition whose last day is over by more than the retention; answers with its name, or null when there is none.
-- One a call, so that the exclusive lock on the parent is short and a lock timeout loses nothing.
create function :schema.prune_history_v1(_settled_days integer, _discarded_days integer) returns text
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $tenantry$
declare
  _name text;
begin
  select child.relname into _name
  from pg_inherits
  join pg_class child on child.oid = pg_inherits.inhrelid
  where pg_inherits.inhparent in (select class.oid from pg_class class join pg_namespace namespace on namespace.oid = class.relnamespace
      where namespace.nspname = :schema_literal and class.relname in ('job_history_settled', 'job_history_discarded'))
    and child.relname ~ '_\d{8}$'
    and to_date(right(child.relname, 8), 'YYYYMMDD') + case when child.relname like 'job\_history\_settled\_%' then _settled_days else _discarded_days end
        < (now() at time zone 'UTC')::date
  order by right(child.relname, 8)
  limit 1;
  if _name is not null then
    execute format('drop table %I.%I', :schema_literal, _name);
  end if;
  return _name;
end $tenantry$;

select :schema.ensure_history_v1(14);
