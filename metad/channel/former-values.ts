import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { reveal } from '#shared/secret/secret.ts';
import { MAX_FORMER_CHARACTERS, MAX_FORMER_VALUES } from '../config/limits.ts';
import type { ServedView } from '../view/served-view.ts';

/** Returns private and secret values of the former view that the present one changed or removed. */
export function valuesThatWere(former: ServedView, view: ServedView): readonly string[] {
  return [...former.osParameters].flatMap(([name, { value, visibility }]) => {
    if (value === null || !isHiddenFromLogs(visibility)) return [];
    const now = view.osParameters.get(name)?.value;
    return now && reveal(now) === reveal(value) ? [] : [reveal(value)];
  });
}

/**
 * Returns the last values within the limits, each once. The very last one is always kept.
 * @param values in the order in which they were changed
 */
export function keepLatest(values: readonly string[]): readonly string[] {
  const latest = [...new Set(values.toReversed())].slice(0, MAX_FORMER_VALUES);
  let characters = 0;
  const end = latest.findIndex((value, index) => {
    characters += value.length;
    return index > 0 && characters > MAX_FORMER_CHARACTERS;
  });
  return (end === -1 ? latest : latest.slice(0, end)).toReversed();
}
