import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { ServedView } from '../view/served-view.ts';

type Mask = (text: string) => string;
const masks = new WeakMap<ServedView, Map<number, Mask>>();

/**
 * What a guest says of itself is stored, and it quotes commands and what they printed: the
 * instance's own private and secret values are taken out before the words leave this process.
 * Masked and cut at once: half a secret is none that is known, and the rest of a long text is not
 * worth the time.
 */
export function maskOf(view: ServedView, maxLength: number): Mask {
  let known = masks.get(view);
  if (!known) masks.set(view, (known = new Map<number, Mask>()));
  let mask = known.get(maxLength);
  if (!mask) {
    const hidden = [...view.osParameters.values()].flatMap(({ value, visibility }) =>
      value === null || visibility === 'public' ? [] : [reveal(value)],
    );
    known.set(maxLength, (mask = createMask(hidden, maxLength)));
  }
  return mask;
}
