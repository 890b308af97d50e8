export function joinHints(first: string | undefined, second: string): string {
  return first === undefined ? second : `${first.replace(/[.;]$/, '')}. ${second}`;
}
