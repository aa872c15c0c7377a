-- name: configure_queue
-- $1 queue  $2 settings as JSON. One row: what is set now, as JSON; so for the others.
select :schema.configure_queue($1::text, $2::jsonb) as settings;

-- name: configure_tenant
-- $1 queue  $2 tenant  $3 settings
select :schema.configure_tenant($1::text, $2::text, $3::jsonb) as settings;

-- name: configure_group
-- $1 queue  $2 group  $3 settings
select :schema.configure_group($1::text, $2::text, $3::jsonb) as settings;

-- name: configure_kind
-- $1 queue  $2 kind  $3 settings
select :schema.configure_kind($1::text, $2::text, $3::jsonb) as settings;

-- name: configure_key
-- $1 queue  $2 key  $3 settings
select :schema.configure_key($1::text, $2::text, $3::jsonb) as settings;

-- name: pause
-- $1 queue  $2 scope
select :schema.pause($1::text, $2::jsonb) as settings;

-- name: resume
-- $1 queue  $2 scope
select :schema.resume($1::text, $2::jsonb) as settings;
