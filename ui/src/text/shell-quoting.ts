// Quoting for a terminal. Pure.

/** Quotes for a POSIX shell unless all characters are safe. */
export function quoted(text: string): string {
  // Not with a leading =, which zsh expands to a command's path.
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
