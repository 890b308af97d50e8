import type { JSX } from 'preact';
import { messageOf } from '../../parts/failure.tsx';
import { Text } from '../../parts/text.tsx';
import { fieldOfFailure } from './field-of-failure.ts';
import type { Faults } from './install-form.ts';
import type { Check } from './use-check.ts';

/** Returns the refusal of the node at the field that it concerns. */
export function faultsOfCheck({ failure }: Check): Partial<Faults> {
  if (failure === undefined) return {};
  const field = fieldOfFailure(failure);
  if (field === undefined) return {};
  const hint = failure.hint === null ? '' : ` ${failure.hint}.`;
  return { [field]: `${messageOf(failure)}.${hint}`.replaceAll('..', '.') };
}

interface CheckLineProps {
  readonly check: Check;
  /** The form has no fault that the page found itself. */
  readonly isComplete: boolean;
}

/** Tells whether the node would accept the operation. */
export function CheckLine({ check: { state, failure }, isComplete }: CheckLineProps): JSX.Element {
  const hint = failure?.hint ?? null;
  return (
    <div class="check" role="status">
      {!isComplete ? (
        <p class="soft">The node checks the form when it is complete.</p>
      ) : state === 'checking' || state === 'idle' ? (
        <p class="soft">The node checks the form …</p>
      ) : state === 'fine' ? (
        <p class="state good">The node accepts this.</p>
      ) : (
        <>
          <p class="problem">
            <Text>{failure === undefined ? '' : messageOf(failure)}</Text>
          </p>
          {hint !== null && (
            <p class="help">
              <Text>{hint}</Text>
            </p>
          )}
        </>
      )}
    </div>
  );
}
