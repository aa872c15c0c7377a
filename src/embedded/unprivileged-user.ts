import { readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { ConfigurationError } from '../errors.js'

/** As whom the server runs when we are root, which PostgreSQL refuses to run as. */
export interface UnprivilegedUser {
  readonly uid: number
  readonly gid: number
}

/** Undefined when this process is not root: then the server simply runs as the same user. */
export function unprivilegedUser(): UnprivilegedUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  // initdb looks its own user up by number, so a made-up one will not do.
  const users = parsePasswd(readFileSync('/etc/passwd', 'utf8')).filter(({ uid, gid }) => uid !== 0 && gid !== 0)
  const user = users.find(({ name }) => name === 'nobody') ?? users[0]
  if (user === undefined) {
    throw new ConfigurationError(
      'expected /etc/passwd to list a user other than root, as whom PostgreSQL can run; ' +
        'add one, run this as another user, or set DATABASE_URL to a server that already runs',
    )
  }
  return { uid: user.uid, gid: user.gid }
}

/** `nobody` is 65534 on Linux and -2 on macOS. */
function parsePasswd(text: string): readonly (UnprivilegedUser & { readonly name: string })[] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4 && /^-?\d+$/.test(fields[2] ?? '') && /^-?\d+$/.test(fields[3] ?? ''))
    .map((fields) => ({ name: fields[0] ?? '', uid: Number(fields[2]), gid: Number(fields[3]) }))
}

/** The directory for temporary files, or /tmp when that user could not reach into it. */
export function temporaryDirectory(user: UnprivilegedUser | undefined): string {
  const directory = tmpdir()
  return user === undefined || isOpenToAll(directory) ? directory : '/tmp'
}

function isOpenToAll(path: string): boolean {
  const open = (statSync(path).mode & 0o001) !== 0
  return open && (dirname(path) === path || isOpenToAll(dirname(path)))
}
