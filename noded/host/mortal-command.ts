/**
 * A command that the kernel kills when this daemon ends, whatever ends it. That is at once, but not
 * before the daemon has ended: what must be gone when the next one looks is in kept-children.ts.
 */
export function planMortal(
  command: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  return { command: 'setpriv', args: ['--pdeathsig', 'KILL', command, ...args] };
}
