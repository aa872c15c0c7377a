const PLAIN_WORDS: Readonly<Record<string, string>> = {
  EACCES: 'it may not be read by this user',
  EISDIR: 'it is a directory',
  ENOENT: 'there is no such file',
}

/** Why a file could not be read, for people. */
export function describeFileError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return PLAIN_WORDS[code] ?? error.message
}
