import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { REDACTED } from '#shared/contract/redacted.ts';
import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { Instance } from '../channel/instance.ts';
import type { ServedView } from '../view/served-view.ts';

type Mask = (text: string) => string;

interface KnownMasks {
  /** What is hidden beside the values of the view. */
  readonly inputs: readonly string[];
  readonly formerValues: readonly string[];
  readonly isInherited: boolean;
  readonly byLength: Map<number, Mask>;
}
const masks = new WeakMap<ServedView, KnownMasks>();
const NO_INPUTS: readonly string[] = [];

/**
 * What a guest says of itself is stored, and it quotes commands and what they printed: the
 * instance's own private and secret values, those that it had before a change, and what was given
 * with a command, are taken out before the words leave this process.
 * Masked and cut at once: half a secret is none that is known, and the rest of a long text is not
 * worth the time.
 *
 * Nothing is told of a guest that may quote a secret which was lost with another metad.
 */
export function maskOf(
  instance: Pick<Instance, 'view' | 'lifecycle' | 'isInherited' | 'formerValues'>,
  maxLength: number,
): Mask {
  const { view, lifecycle, isInherited, formerValues } = instance;
  const inputs = lifecycle?.hiddenInputs ?? NO_INPUTS;
  let known = masks.get(view);
  if (
    known?.inputs !== inputs ||
    known.isInherited !== isInherited ||
    known.formerValues !== formerValues
  )
    masks.set(view, (known = { inputs, isInherited, formerValues, byLength: new Map() }));
  let mask = known.byLength.get(maxLength);
  if (!mask) {
    const hidden = [...view.osParameters.values()].flatMap(({ value, visibility }) =>
      value !== null && isHiddenFromLogs(visibility) ? [reveal(value)] : [],
    );
    const isLost = isInherited && hasLostSecret(view);
    mask = isLost ? hideAll : createMask([...hidden, ...formerValues, ...inputs], maxLength);
    known.byLength.set(maxLength, mask);
  }
  return mask;
}

function hasLostSecret({ osParameters }: ServedView): boolean {
  return [...osParameters.values()].some(
    ({ value, visibility }) => value === null && visibility === 'secret',
  );
}

function hideAll(text: string): string {
  return text === '' ? '' : REDACTED;
}
