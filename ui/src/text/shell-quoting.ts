// Words for a terminal. Pure.

/** For a POSIX shell: whatever is not plainly harmless stands in single quotes. */
export function quoted(text: string): string {
  // Not with = in front: zsh would look for a command of that name.
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
