import type { ServedView } from './served-view.ts';

/** Keeps the names within the headers that Node's HTTP parser accepts, 16 KiB. */
const MAX_CHARACTERS = 8192;

/** Returns the names of the secrets whose values the view lacks, as many as fit. Pure. */
export function lostSecrets({ osParameters }: Pick<ServedView, 'osParameters'>): readonly string[] {
  const names: string[] = [];
  let characters = 0;
  for (const [name, { value }] of osParameters) {
    if (value !== null) continue;
    characters += name.length + 1;
    if (characters > MAX_CHARACTERS) break;
    names.push(name);
  }
  return names;
}
