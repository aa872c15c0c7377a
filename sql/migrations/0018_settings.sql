-- breaking: no
-- Settings: by whom, what a queue, a tenant, a group, a kind or a key gets more or less. Public functions, for operators and
-- programs in any language; the client calls them too, so every setting is checked in one more place than the client.
--
-- They take no queue lock and write no row of the ring: what changes is told to the next claim by a notice, and claims do not
-- wait for a transaction that changes settings, however long it stays open. (A change of the strategy is the exception: it
-- removes the walks, so it should be committed at once.) Settings of one tenant, group, kind or key are changed one
-- transaction after another; a queue's row is locked against a change of its strategy for as long as something that needs
-- the strategy is being set.

-- Refuses what is not a number within bounds, or null where that is an answer.
create function :schema.setting_number_v1(
  _name text, _value jsonb, _least numeric, _most numeric, _whole boolean default false, _needed boolean default false
) returns numeric
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _number numeric := case when jsonb_typeof(_value) = 'number' then _value::numeric end;
begin
  if coalesce(jsonb_typeof(_value), 'null') = 'null' and not _needed then
    return null;
  end if;
  if _number is null or _number not between _least and _most or _whole and _number <> trunc(_number) then
    raise exception 'expected % to be % from % to %, got %', _name, case when _whole then 'an integer' else 'a number' end, _least, _most, coalesce(left(_value::text, 80), 'null')
      using errcode = 'invalid_parameter_value';
  end if;
  return case when _whole then trunc(_number) else _number end;
end $tenantry$;

-- Refuses members that nobody reads: a misspelt setting that is silently ignored is found in production.
create function :schema.check_members_v1(_name text, _value jsonb, _known text[]) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _unknown text;
begin
  if jsonb_typeof(_value) is distinct from 'object' then
    raise exception 'expected % to be a JSON object, got %', _name, coalesce(left(_value::text, 80), 'null') using errcode = 'invalid_parameter_value';
  end if;
  select member.key into _unknown from jsonb_object_keys(_value) as member (key) where member.key <> all (_known) order by member.key limit 1;
  if _unknown is not null then
    raise exception 'expected the members of % to be among %, got "%"', _name, array_to_string(_known, ', '), left(_unknown, 80)
      using errcode = 'invalid_parameter_value';
  end if;
end $tenantry$;

create function :schema.check_name_v1(_name text, _value text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
begin
  if coalesce(octet_length(_value), 0) not between 1 and 255 then
    raise exception 'expected % to be a text of 1 to 255 bytes, got %', _name, coalesce(quote_literal(left(_value, 80)), 'null') using errcode = 'invalid_parameter_value';
  end if;
end $tenantry$;

-- {"limit", "per_ms", "burst"} as columns.
create function :schema.rate_patch_v1(_name text, _rate jsonb) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _prefix text := left(_name, -4);
  _limit numeric;
  _per_ms numeric;
  _burst numeric;
  _per_second numeric;
begin
  if jsonb_typeof(_rate) <> 'null' then
    perform :schema.check_members_v1(_name, _rate, array['limit', 'per_ms', 'burst']);
    _limit := :schema.setting_number_v1(_name || '.limit', _rate -> 'limit', 0.000001, 1000000000, _needed => true);
    _per_ms := coalesce(:schema.setting_number_v1(_name || '.per_ms', _rate -> 'per_ms', 1, 1000000000), 1000);
    _per_second := _limit * 1000 / _per_ms;
    if _per_second not between 0.000001 and 1000000 then
      raise exception 'expected % to be from 0.000001 to 1000000 a second, got %', _name, _per_second::double precision using errcode = 'invalid_parameter_value';
    end if;
    _burst := coalesce(:schema.setting_number_v1(_name || '.burst', _rate -> 'burst', 1, 1000000, true), ceil(_per_second));
  end if;
  return jsonb_build_object(_prefix || 'rate_per_second', _per_second, _prefix || 'burst', _burst);
end $tenantry$;

-- {"wait_ms", "share"} as columns.
create function :schema.objective_patch_v1(_objective jsonb) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
begin
  if jsonb_typeof(_objective) = 'null' then
    return '{"objective_wait_ms": null, "objective_share": null}';
  end if;
  perform :schema.check_members_v1('objective', _objective, array['wait_ms', 'share']);
  return jsonb_build_object(
    'objective_wait_ms', :schema.setting_number_v1('objective.wait_ms', _objective -> 'wait_ms', 1, 86400000, _needed => true),
    'objective_share', :schema.setting_number_v1('objective.share', _objective -> 'share', 0.5, 0.9999, _needed => true));
end $tenantry$;

-- One of a closed set of words, or null.
create function :schema.setting_choice_v1(_name text, _value jsonb, _choices text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
begin
  if jsonb_typeof(_value) = 'null' then
    return null;
  end if;
  if jsonb_typeof(_value) <> 'string' or (_value #>> '{}') <> all (_choices) then
    raise exception 'expected % to be one of ''%'', got %', _name, array_to_string(_choices, ''', '''), left(_value::text, 80) using errcode = 'invalid_parameter_value';
  end if;
  return _value #>> '{}';
end $tenantry$;

-- Settings, as they are given, to the columns that hold them, after every check that needs no row. What is null gets the default.
create function :schema.settings_patch_v1(_settings jsonb, _known text[]) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _name text;
  _value jsonb;
  _patch jsonb := '{}';
begin
  perform :schema.check_members_v1('settings', _settings, _known);
  for _name, _value in select member.key, member.value from jsonb_each(_settings) as member order by member.key loop
    _patch := _patch || case
      when _name = 'weight' then jsonb_build_object(_name, coalesce(:schema.setting_number_v1(_name, _value, 0.001, 1000), 1))
      when _name = 'key_concurrency' then jsonb_build_object(_name, coalesce(:schema.setting_number_v1(_name, _value, 0, 1000000, true), 1))
      when _name in ('concurrency', 'tenant_concurrency') then jsonb_build_object(_name, :schema.setting_number_v1(_name, _value, 0, 1000000, true))
      when _name in ('quota', 'tenant_quota') then jsonb_build_object(_name, :schema.setting_number_v1(_name, _value, 0, 1000000000, true))
      when _name in ('rate', 'tenant_rate', 'key_rate') then :schema.rate_patch_v1(_name, _value)
      when _name = 'objective' then :schema.objective_patch_v1(_value)
      when _name = 'strategy' then jsonb_build_object(_name, coalesce(:schema.setting_choice_v1(_name, _value, array['fair', 'fifo', 'round-robin']), 'fair'))
      when _name = 'history' then jsonb_build_object(_name, coalesce(:schema.setting_choice_v1(_name, _value, array['keep', 'keep-without-payload', 'none']), 'keep'))
      when _name = 'charge' then jsonb_build_object(_name, coalesce(:schema.setting_choice_v1(_name, _value, array['jobs', 'time']), 'jobs'))
      when _name = 'group' then jsonb_build_object('grp', _value)
    end;
    if _patch is null then
      raise exception 'broken invariant: setting % is known and has no column', _name;
    end if;
  end loop;
  if _settings ? 'group' and jsonb_typeof(_settings -> 'group') <> 'null' then
    if jsonb_typeof(_settings -> 'group') <> 'string' then
      raise exception 'expected group to be a text of 1 to 255 bytes, got %', left((_settings -> 'group')::text, 80) using errcode = 'invalid_parameter_value';
    end if;
    perform :schema.check_name_v1('group', _settings ->> 'group');
  end if;
  return _patch;
end $tenantry$;

-- A rate as it is given: in the smallest unit of time in which its limit is a whole number, or else a second.
create function :schema.rate_v1(_per_second double precision, _burst integer) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select case when _per_second is null then null else coalesce(
    (
      select jsonb_build_object('limit', round(_per_second * unit.ms / 1000)::bigint, 'per_ms', unit.ms, 'burst', _burst)
      from unnest(array[1000, 60000, 3600000, 86400000]) as unit (ms)
      where abs(_per_second * unit.ms / 1000 - round(_per_second * unit.ms / 1000)) < 0.000000001 * _per_second * unit.ms / 1000
      order by unit.ms
      limit 1
    ),
    jsonb_build_object('limit', _per_second, 'per_ms', 1000, 'burst', _burst)
  ) end
$tenantry$;

create function :schema.objective_v1(_wait_ms double precision, _share double precision) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$ select case when _wait_ms is not null then jsonb_build_object('wait_ms', _wait_ms, 'share', _share) end $tenantry$;

-- What is set, by the names under which it is set; the defaults where nothing is.

create function :schema.queue_settings_v1(_queue text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'queue', given.name,
    'strategy', coalesce(queue.strategy, 'fair'), 'history', coalesce(queue.history, 'keep'), 'charge', coalesce(queue.charge, 'jobs'),
    'paused_at', queue.paused_at,
    'concurrency', queue.concurrency, 'rate', :schema.rate_v1(queue.rate_per_second, queue.burst), 'quota', queue.quota,
    'tenant_concurrency', queue.tenant_concurrency,
    'tenant_rate', :schema.rate_v1(queue.tenant_rate_per_second, queue.tenant_burst),
    'tenant_quota', queue.tenant_quota,
    'key_concurrency', coalesce(queue.key_concurrency, 1),
    'key_rate', :schema.rate_v1(queue.key_rate_per_second, queue.key_burst),
    'objective', :schema.objective_v1(queue.objective_wait_ms, queue.objective_share))
  from (values (_queue)) as given (name)
  left join :schema.queue on queue.name = given.name
$tenantry$;

create function :schema.tenant_settings_v1(_queue text, _tenant text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'queue', _queue, 'tenant', given.name,
    'weight', coalesce(tenant.weight, 1), 'group', tenant.grp, 'paused_at', tenant.paused_at,
    'concurrency', tenant.concurrency, 'rate', :schema.rate_v1(tenant.rate_per_second, tenant.burst), 'quota', tenant.quota,
    'objective', :schema.objective_v1(tenant.objective_wait_ms, tenant.objective_share))
  from (values (_tenant)) as given (name)
  left join :schema.tenant on tenant.queue = _queue and tenant.tenant = given.name
$tenantry$;

create function :schema.group_settings_v1(_queue text, _group text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'queue', _queue, 'group', given.name, 'weight', coalesce(tenant_group.weight, 1),
    'objective', :schema.objective_v1(tenant_group.objective_wait_ms, tenant_group.objective_share))
  from (values (_group)) as given (name)
  left join :schema.tenant_group on tenant_group.queue = _queue and tenant_group.name = given.name
$tenantry$;

create function :schema.kind_settings_v1(_queue text, _kind text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'queue', _queue, 'kind', given.name, 'paused_at', kind.paused_at,
    'concurrency', kind.concurrency, 'rate', :schema.rate_v1(kind.rate_per_second, kind.burst))
  from (values (_kind)) as given (name)
  left join :schema.kind on kind.queue = _queue and kind.kind = given.name
$tenantry$;

create function :schema.key_settings_v1(_queue text, _key text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select jsonb_build_object(
    'queue', _queue, 'key', given.name,
    'concurrency', key.concurrency, 'rate', :schema.rate_v1(key.rate_per_second, key.burst))
  from (values (_key)) as given (name)
  left join :schema.key on key.queue = _queue and key.key = given.name
$tenantry$;

-- Says that claims of the queue have settings to look at, and settling limits; answers with the strategy, which stays what it is
-- until this transaction ends. A queue that is marked already is only locked for sharing, so that changes to different
-- tenants do not wait for each other.
create function :schema.govern_v1(_queue text, _limited boolean) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _strategy text;
begin
  select queue.strategy into _strategy
  from :schema.queue
  where queue.name = _queue and queue.governed and (queue.limited or not _limited)
  for share;
  if not found then
    insert into :schema.queue as queue (name, governed, limited) values (_queue, true, _limited)
    on conflict (name) do update set governed = true, limited = queue.limited or excluded.limited
    returning queue.strategy into _strategy;
  end if;
  return _strategy;
end $tenantry$;

-- What acts on single tenants or kinds acts by way of the ring, which the other strategies do not have.
create function :schema.check_fair_v1(_queue text, _strategy text, _what text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
begin
  if _strategy <> 'fair' then
    raise exception 'expected the strategy of queue "%" to be ''fair'', which % needs, got ''%''', _queue, _what, _strategy using errcode = 'invalid_parameter_value';
  end if;
end $tenantry$;

-- A pause that is on stays on since when it was.
create function :schema.pause_patch_v1(_patch jsonb, _paused_at timestamptz) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
  select case when _paused_at is not null and _patch ->> 'paused_at' is not null then _patch - 'paused_at' else _patch end
$tenantry$;

-- Has the next claims look at the keys for which jobs wait; the walk along the keys comes by those past the first thousand.
create function :schema.notice_blocked_v1(_queue text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _key text := '';
begin
  for _n in 1..1000 loop
    select job.key into _key from :schema.job
    where job.queue = _queue and job.key > _key and job.key is not null
    order by job.key
    limit 1;
    exit when _key is null;
    if exists (select from :schema.job where job.queue = _queue and job.key = _key and job.state = 'blocked') then
      perform :schema.notice_keys_v1(array[_queue], array[_key]);
    end if;
  end loop;
end $tenantry$;

create function :schema.change_queue_v1(_queue text, _patch jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _old :schema.queue;
  _new :schema.queue;
  _blocking text;
begin
  insert into :schema.queue (name) values (_queue) on conflict do nothing;
  select * into strict _old from :schema.queue where queue.name = _queue for no key update;
  _new := jsonb_populate_record(_old, :schema.pause_patch_v1(_patch, _old.paused_at));
  -- In this order: whoever set something of a tenant or a kind has let go of the queue's row by now, so it is seen.
  if _new.strategy <> 'fair' then
    _blocking := case
      when _new.charge <> 'jobs' then 'charge ''time'''
      when _new.tenant_concurrency is not null then 'tenant_concurrency'
      when _new.tenant_rate_per_second is not null then 'tenant_rate'
    end;
    if _blocking is null and _old.strategy = 'fair' then
      select format('%s of tenant "%s"', case when tenant.grp is not null then 'group' when tenant.paused_at is not null then 'the pause'
        when tenant.concurrency is not null then 'concurrency' else 'rate' end, left(tenant.tenant, 80))
      into _blocking
      from :schema.tenant
      where tenant.queue = _queue and num_nonnulls(tenant.grp, tenant.paused_at, tenant.concurrency, tenant.rate_per_second) > 0
      limit 1;
    end if;
    if _blocking is null and _old.strategy = 'fair' then
      select format('%s of kind "%s"', case when kind.paused_at is not null then 'the pause'
        when kind.concurrency is not null then 'concurrency' else 'rate' end, left(kind.kind, 80))
      into _blocking
      from :schema.kind where kind.queue = _queue
      limit 1;
    end if;
    if _blocking is not null then
      perform :schema.check_fair_v1(_queue, _new.strategy, _blocking);
    end if;
  end if;
  if _new.strategy <> _old.strategy or _new.charge <> _old.charge then
    -- What came while another strategy ruled was not signalled, and passes are jobs or seconds: without walks, the next fair claim
    -- looks for all lanes and begins anew.
    delete from :schema.walk where walk.queue = _queue;
  end if;

  update :schema.queue
  set strategy = _new.strategy, history = _new.history, charge = _new.charge, paused_at = _new.paused_at,
      concurrency = _new.concurrency, rate_per_second = _new.rate_per_second, burst = _new.burst, quota = _new.quota,
      tenant_concurrency = _new.tenant_concurrency, tenant_rate_per_second = _new.tenant_rate_per_second,
      tenant_burst = _new.tenant_burst, tenant_quota = _new.tenant_quota,
      key_concurrency = _new.key_concurrency, key_rate_per_second = _new.key_rate_per_second, key_burst = _new.key_burst,
      objective_wait_ms = _new.objective_wait_ms, objective_share = _new.objective_share,
      governed = queue.governed or _new.charge <> 'jobs' or _new.key_concurrency <> 1 or num_nonnulls(_new.concurrency, _new.rate_per_second,
        _new.tenant_concurrency, _new.tenant_rate_per_second, _new.key_rate_per_second) > 0,
      limited = queue.limited or num_nonnulls(_new.concurrency, _new.tenant_concurrency) > 0
  where queue.name = _queue;
  -- A claim looks at limits of the queue itself anyway; what it has parked or left blocked it must look at again.
  if _patch ?| array['strategy', 'tenant_concurrency', 'tenant_rate_per_second'] then
    insert into :schema.notice (queue, kind, tenant) values (_queue, '', '');
  end if;
  if _patch ?| array['key_concurrency', 'key_rate_per_second'] then
    perform :schema.notice_blocked_v1(_queue);
  end if;
  perform :schema.wake_v1(array[_queue]);
end $tenantry$;

create function :schema.change_tenant_v1(_queue text, _tenant text, _patch jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _strategy text := :schema.govern_v1(_queue, _patch ->> 'concurrency' is not null);
  _row :schema.tenant;
begin
  loop
    insert into :schema.tenant (queue, tenant) values (_queue, _tenant) on conflict do nothing;
    select * into _row from :schema.tenant where tenant.queue = _queue and tenant.tenant = _tenant for no key update;
    -- Not there: somebody else has just set it back to the defaults.
    exit when found;
  end loop;
  _row := jsonb_populate_record(_row, :schema.pause_patch_v1(_patch, _row.paused_at));
  if num_nonnulls(_row.grp, _row.paused_at, _row.concurrency, _row.rate_per_second) > 0 then
    perform :schema.check_fair_v1(_queue, _strategy, case when _row.grp is not null then 'group of a tenant' when _row.paused_at is not null then 'the pause of a tenant'
      when _row.concurrency is not null then 'concurrency of a tenant' else 'rate of a tenant' end);
  end if;
  if _row.weight = 1
    and num_nonnulls(_row.grp, _row.paused_at, _row.concurrency, _row.rate_per_second, _row.quota, _row.objective_wait_ms) = 0 then
    delete from :schema.tenant where tenant.queue = _queue and tenant.tenant = _tenant;
  else
    update :schema.tenant
    set weight = _row.weight, grp = _row.grp, paused_at = _row.paused_at, concurrency = _row.concurrency,
        rate_per_second = _row.rate_per_second, burst = _row.burst, quota = _row.quota,
        objective_wait_ms = _row.objective_wait_ms, objective_share = _row.objective_share
    where tenant.queue = _queue and tenant.tenant = _tenant;
  end if;
  insert into :schema.notice (queue, kind, tenant) values (_queue, '', _tenant);
  perform :schema.wake_v1(array[_queue]);
end $tenantry$;

create function :schema.change_group_v1(_queue text, _group text, _patch jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _row :schema.tenant_group;
begin
  perform :schema.govern_v1(_queue, false);
  loop
    insert into :schema.tenant_group (queue, name) values (_queue, _group) on conflict do nothing;
    select * into _row from :schema.tenant_group where tenant_group.queue = _queue and tenant_group.name = _group for no key update;
    exit when found;
  end loop;
  _row := jsonb_populate_record(_row, _patch);
  if _row.weight = 1 and _row.objective_wait_ms is null then
    delete from :schema.tenant_group where tenant_group.queue = _queue and tenant_group.name = _group;
  else
    update :schema.tenant_group
    set weight = _row.weight, objective_wait_ms = _row.objective_wait_ms, objective_share = _row.objective_share
    where tenant_group.queue = _queue and tenant_group.name = _group;
  end if;
  perform :schema.wake_v1(array[_queue]);
end $tenantry$;

create function :schema.change_kind_v1(_queue text, _kind text, _patch jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _strategy text := :schema.govern_v1(_queue, _patch ->> 'concurrency' is not null);
  _row :schema.kind;
begin
  loop
    insert into :schema.kind (queue, kind) values (_queue, _kind) on conflict do nothing;
    select * into _row from :schema.kind where kind.queue = _queue and kind.kind = _kind for no key update;
    exit when found;
  end loop;
  _row := jsonb_populate_record(_row, :schema.pause_patch_v1(_patch, _row.paused_at));
  if num_nonnulls(_row.paused_at, _row.concurrency, _row.rate_per_second) = 0 then
    delete from :schema.kind where kind.queue = _queue and kind.kind = _kind;
  else
    perform :schema.check_fair_v1(_queue, _strategy, case when _row.paused_at is not null then 'the pause of a kind'
      when _row.concurrency is not null then 'concurrency of a kind' else 'rate of a kind' end);
    update :schema.kind
    set paused_at = _row.paused_at, concurrency = _row.concurrency, rate_per_second = _row.rate_per_second, burst = _row.burst
    where kind.queue = _queue and kind.kind = _kind;
  end if;
  insert into :schema.notice (queue, kind) values (_queue, _kind);
  perform :schema.wake_v1(array[_queue]);
end $tenantry$;

create function :schema.change_key_v1(_queue text, _key text, _patch jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $tenantry$
declare
  _row :schema.key;
begin
  perform :schema.govern_v1(_queue, false);
  loop
    insert into :schema.key (queue, key) values (_queue, _key) on conflict do nothing;
    select * into _row from :schema.key where key.queue = _queue and key.key = _key for no key update;
    exit when found;
  end loop;
  _row := jsonb_populate_record(_row, _patch);
  if num_nonnulls(_row.concurrency, _row.rate_per_second) = 0 then
    delete from :schema.key where key.queue = _queue and key.key = _key;
  else
    update :schema.key
    set concurrency = _row.concurrency, rate_per_second = _row.rate_per_second, burst = _row.burst
    where key.queue = _queue and key.key = _key;
  end if;
  perform :schema.notice_keys_v1(array[_queue], array[_key]);
  perform :schema.wake_v1(array[_queue]);
end $tenantry$;

-- The public functions. What is not named stays as it is; null restores the default. Each answers with what is set now.

create function :schema.configure_queue(queue text, settings jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _patch jsonb := :schema.settings_patch_v1(settings, array['strategy', 'history', 'charge', 'concurrency', 'rate', 'quota',
    'tenant_concurrency', 'tenant_rate', 'tenant_quota', 'key_concurrency', 'key_rate', 'objective']);
begin
  perform :schema.check_name_v1('queue', queue);
  if _patch <> '{}' then
    perform :schema.change_queue_v1(queue, _patch);
  end if;
  return :schema.queue_settings_v1(queue);
end $tenantry$;

create function :schema.configure_tenant(queue text, tenant text, settings jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _patch jsonb := :schema.settings_patch_v1(settings, array['weight', 'group', 'concurrency', 'rate', 'quota', 'objective']);
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_name_v1('tenant', tenant);
  if _patch <> '{}' then
    perform :schema.change_tenant_v1(queue, tenant, _patch);
  end if;
  return :schema.tenant_settings_v1(queue, tenant);
end $tenantry$;

create function :schema.configure_group(queue text, name text, settings jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _patch jsonb := :schema.settings_patch_v1(settings, array['weight', 'objective']);
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_name_v1('group', name);
  if _patch <> '{}' then
    perform :schema.change_group_v1(queue, name, _patch);
  end if;
  return :schema.group_settings_v1(queue, name);
end $tenantry$;

create function :schema.configure_kind(queue text, kind text, settings jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _patch jsonb := :schema.settings_patch_v1(settings, array['concurrency', 'rate']);
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_name_v1('kind', kind);
  if _patch <> '{}' then
    perform :schema.change_kind_v1(queue, kind, _patch);
  end if;
  return :schema.kind_settings_v1(queue, kind);
end $tenantry$;

create function :schema.configure_key(queue text, key text, settings jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _patch jsonb := :schema.settings_patch_v1(settings, array['concurrency', 'rate']);
begin
  perform :schema.check_name_v1('queue', queue);
  perform :schema.check_name_v1('key', key);
  if _patch <> '{}' then
    perform :schema.change_key_v1(queue, key, _patch);
  end if;
  return :schema.key_settings_v1(queue, key);
end $tenantry$;

-- A part of a queue: {}, {"tenant": …}, {"kind": …}, or both where _both says so. Refuses anything else.
create function :schema.check_scope_v1(_name text, _scope jsonb, _known text[]) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $tenantry$
declare
  _member text;
begin
  perform :schema.check_members_v1(_name, _scope, _known);
  foreach _member in array array['tenant', 'kind'] loop
    continue when not _scope ? _member;
    if jsonb_typeof(_scope -> _member) <> 'string' then
      raise exception 'expected % of % to be a text of 1 to 255 bytes, got %', _member, _name, left((_scope -> _member)::text, 80) using errcode = 'invalid_parameter_value';
    end if;
    perform :schema.check_name_v1(_member, _scope ->> _member);
  end loop;
end $tenantry$;

create function :schema.set_pause_v1(_queue text, _scope jsonb, _patch jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $tenantry$
begin
  perform :schema.check_name_v1('queue', _queue);
  perform :schema.check_scope_v1('scope', _scope, array['tenant', 'kind']);
  if _scope ?& array['tenant', 'kind'] then
    raise exception 'expected scope to name a tenant or a kind, got both' using errcode = 'invalid_parameter_value';
  end if;
  if _scope ? 'tenant' then
    perform :schema.change_tenant_v1(_queue, _scope ->> 'tenant', _patch);
    return :schema.tenant_settings_v1(_queue, _scope ->> 'tenant');
  elsif _scope ? 'kind' then
    perform :schema.change_kind_v1(_queue, _scope ->> 'kind', _patch);
    return :schema.kind_settings_v1(_queue, _scope ->> 'kind');
  end if;
  perform :schema.change_queue_v1(_queue, _patch);
  return :schema.queue_settings_v1(_queue);
end $tenantry$;

create function :schema.pause(queue text, scope jsonb default '{}') returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $tenantry$ select :schema.set_pause_v1(queue, scope, jsonb_build_object('paused_at', clock_timestamp())) $tenantry$;

create function :schema.resume(queue text, scope jsonb default '{}') returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $tenantry$ select :schema.set_pause_v1(queue, scope, '{"paused_at": null}') $tenantry$;

comment on function :schema.configure_queue(text, jsonb) is
  'Changes a queue. Settings: strategy, history, charge, concurrency, rate, quota, tenant_concurrency, tenant_rate, tenant_quota, key_concurrency, key_rate, objective. What is not named stays; null restores the default.';
comment on function :schema.configure_tenant(text, text, jsonb) is
  'Changes a tenant of a queue. Settings: weight, group, concurrency, rate, quota, objective. What is not named stays; null restores the default.';
comment on function :schema.configure_group(text, text, jsonb) is 'Changes a group of tenants. Settings: weight, objective.';
comment on function :schema.configure_kind(text, text, jsonb) is 'Limits a kind of a queue. Settings: concurrency, rate.';
comment on function :schema.configure_key(text, text, jsonb) is 'Limits a key of a queue. Settings: concurrency, rate.';
comment on function :schema.pause(text, jsonb) is 'Lets nothing more start of a queue, or of {"tenant": …} or {"kind": …} of it; what runs goes on.';
comment on function :schema.resume(text, jsonb) is 'Ends a pause.';
