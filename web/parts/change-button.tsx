import type { JSX } from 'preact';
import { commandOf, type KnownOpcode } from '../commands/command-of.ts';
import { submitOrNotify } from '../live/submit.ts';
import { ask } from './ask.tsx';

interface ChangeButtonProps {
  readonly opcode: KnownOpcode;
  /** Word of the button, such as `Remove`. */
  readonly children: string;
  /** Object of the change, for screen readers and for the question. */
  readonly of: string;
  /** Consequence of the change. Given: the page asks first. */
  readonly warning?: string;
}

/** Submits one operation. Its tip is the equivalent command. */
export function ChangeButton({ opcode, children, of, warning }: ChangeButtonProps): JSX.Element {
  const run = async (): Promise<void> => {
    const asked = { title: `${children} ${of}?`, text: warning ?? '', yes: children };
    if (warning === undefined || (await ask(asked))) await submitOrNotify(opcode);
  };
  return (
    <button
      type="button"
      title={commandOf(opcode).text}
      aria-label={`${children} ${of}`}
      class={warning === undefined ? undefined : 'danger'}
      onClick={() => void run()}
    >
      {children}
    </button>
  );
}
