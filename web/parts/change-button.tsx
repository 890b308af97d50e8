import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { commandOf, type KnownOpcode } from '../commands/command-of.ts';
import { submit } from '../live/submit.ts';
import { notify } from '../shell/notices.tsx';
import { ask } from './ask.tsx';
import { messageOf } from './failure.tsx';

interface ButtonProps {
  /** Word of the button, such as `Remove`. */
  readonly children: string;
  /** Object of the change, for screen readers and for the question. */
  readonly of: string;
  /** Consequence of the change. Given: the page asks first. */
  readonly warning?: string;
  /** The user types this word before the change. */
  readonly confirm?: string;
  /** Absent: `danger` if the page asks first. */
  readonly look?: 'primary' | 'danger' | null;
  /** Why the button does nothing now. */
  readonly blocked?: string | undefined;
}

interface ChangeButtonProps extends ButtonProps {
  /** The equivalent command. */
  readonly command: string;
  /** Makes the change. A failure becomes a notice. */
  readonly run: () => Promise<void>;
}

/** Makes one change, and shows its equivalent command. */
export function ChangeButton(props: ChangeButtonProps): JSX.Element {
  const { children, of, warning, confirm, command, run, blocked } = props;
  const { look = warning === undefined ? undefined : 'danger' } = props;
  const isBusy = useSignal(false);
  const change = async (): Promise<void> => {
    if (warning !== undefined) {
      const title = `${children} ${of}?`;
      const asked = { title, text: warning, yes: children, command, ...(confirm && { confirm }) };
      if (!(await ask(asked))) return;
    }
    isBusy.value = true;
    try {
      await run();
    } catch (error) {
      notify('bad', messageOf(error), { command });
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <button
      type="button"
      title={blocked ?? command}
      aria-label={`${children} ${of}`}
      class={look ?? undefined}
      disabled={isBusy.value || blocked !== undefined}
      onClick={() => void change()}
    >
      {children}
    </button>
  );
}

interface OperationButtonProps extends ButtonProps {
  readonly opcode: KnownOpcode;
  /** Called when the node has accepted the operation. */
  readonly onAccepted?: () => void;
}

/** Submits one operation. */
export function OperationButton({
  opcode,
  onAccepted,
  ...button
}: OperationButtonProps): JSX.Element {
  const run = async (): Promise<void> => {
    await submit(opcode);
    onAccepted?.();
  };
  return <ChangeButton {...button} command={commandOf(opcode).text} run={run} />;
}
