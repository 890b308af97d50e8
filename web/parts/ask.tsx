import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { CommandLine } from './command-line.tsx';

interface Question {
  readonly title: string;
  readonly text: string;
  /** The word of the button, such as `Remove`. */
  readonly yes: string;
  /** The equivalent command. */
  readonly command: string;
  /** The user types this word before the button works. */
  readonly confirm?: string;
  readonly answer: (isYes: boolean) => void;
}

const question = signal<Question | null>(null);
const typed = signal('');

/** Asks before a change that cannot be undone. */
export function ask(asked: Omit<Question, 'answer'>): Promise<boolean> {
  return new Promise((resolve) => {
    typed.value = '';
    question.value = { ...asked, answer: resolve };
  });
}

/** The dialog of `ask`. */
export function Asking(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const current = question.value;
  useEffect(() => {
    if (current !== null && dialog.current?.open === false) dialog.current.showModal();
  }, [current]);
  const close = (isYes: boolean): void => {
    dialog.current?.close();
    question.value = null;
    current?.answer(isYes);
  };
  const isReady = current?.confirm === undefined || typed.value === current.confirm;
  return (
    <dialog
      ref={dialog}
      aria-labelledby="question"
      onCancel={(event) => {
        event.preventDefault();
        close(false);
      }}
    >
      {current !== null && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady) close(true);
          }}
        >
          <h2 id="question">{current.title}</h2>
          <p>{current.text}</p>
          {current.confirm !== undefined && (
            <label>
              Type {current.confirm} to confirm
              <input
                value={typed.value}
                autocomplete="off"
                autofocus
                onInput={(event) => {
                  typed.value = event.currentTarget.value;
                }}
              />
            </label>
          )}
          <CommandLine>{current.command}</CommandLine>
          <div class="actions">
            <button type="button" onClick={() => close(false)}>
              Cancel
            </button>
            <button type="submit" class="danger" disabled={!isReady}>
              {current.yes}
            </button>
          </div>
        </form>
      )}
    </dialog>
  );
}
