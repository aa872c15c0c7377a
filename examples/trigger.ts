// Enqueue from SQL: a trigger, another language or psql need no library, and stand in the same transaction.
import pg from 'pg'
import { defineJob, Tenantry } from 'tenantry'
import { z } from 'zod'

// What SQL enqueues has not passed the schema. It is checked before it runs, and discarded if it does not fit.
const welcome = defineJob({ kind: 'welcome', payload: z.object({ name: z.string() }) })

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const tenantry = new Tenantry({ pool })
await tenantry.migrate()
await pool.query(`
  create table if not exists member (name text not null, company text not null);
  create or replace function welcome_member() returns trigger language plpgsql as $$
  begin
    perform tenantry.enqueue('welcome', jsonb_build_object('name', new.name), new.company, '{"max_attempts": 3}');
    return new;
  end $$;
  create or replace trigger welcome_member after insert on member for each row execute function welcome_member();
`)

const worker = tenantry.worker()
const welcomed = new Promise<void>((resolve) => {
  worker.handle(welcome, async (job) => {
    console.log(`welcome ${job.payload.name} of ${job.tenant}`)
    resolve()
  })
})
await worker.start()
await pool.query("insert into member (name, company) values ('ada', 'acme')")
await welcomed

await tenantry.close() // stops the worker too
await pool.end()
