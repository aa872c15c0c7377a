// tsc writes files without the executable bit, which `npx tenantry` needs in a checkout.
import { chmodSync, existsSync } from 'node:fs'

const main = new URL('../dist/cli/main.js', import.meta.url)
if (existsSync(main)) chmodSync(main, 0o755)
