import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { REDACTED } from '#shared/contract/redacted.ts';
import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { Instance } from '../channel/instance.ts';
import type { ServedView } from '../view/served-view.ts';

type Mask = (text: string) => string;

interface KnownMasks {
  /** Further texts to hide, beside the values of the view. */
  readonly inputs: readonly string[];
  readonly formerValues: readonly string[];
  readonly isInherited: boolean;
  readonly byLength: Map<number, Mask>;
}
const masks = new WeakMap<ServedView, KnownMasks>();
const NO_INPUTS: readonly string[] = [];

/**
 * Returns a mask for a guest's reports, which are stored and quote commands and their output. The
 * mask hides private and secret values of the instance, values before a change, and inputs of
 * commands. It masks and cuts in one step: half a secret would not be recognised.
 *
 * Hides whole texts of a guest that may quote a secret which an earlier metad had and this one has
 * not.
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
