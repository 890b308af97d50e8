import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { logIn, session } from '../live/session.ts';
import { messageOf } from '../parts/failure.tsx';

/** Covers the page until a user is logged in. */
export function Login(): JSX.Element | null {
  const dialog = useRef<HTMLDialogElement>(null);
  const problem = useSignal('');
  const isBusy = useSignal(false);
  const isNeeded = session.value === null;
  useEffect(() => {
    if (isNeeded && dialog.current?.open === false) dialog.current.showModal();
    if (!isNeeded) dialog.current?.close();
  }, [isNeeded]);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const valueOf = (name: string): string =>
      form.querySelector<HTMLInputElement>(`[name=${name}]`)?.value ?? '';
    isBusy.value = true;
    try {
      await logIn(valueOf('user'), valueOf('password'));
      problem.value = '';
      form.reset();
    } catch (error) {
      problem.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  };
  // A page of `gnt-cluster web` has no users: only the command gives an address that works.
  const isLoopback = location.protocol === 'http:';
  return (
    <dialog
      ref={dialog}
      class="login"
      aria-labelledby="login-title"
      onCancel={(e) => e.preventDefault()}
    >
      <h1 id="login-title">gnt</h1>
      {isLoopback ? (
        <p>
          Open the address that <code>gnt-cluster web</code> prints. Each address works once.
        </p>
      ) : (
        <form onSubmit={(event) => void submit(event)}>
          <label>
            User
            <input name="user" autocomplete="username" required autofocus />
          </label>
          <label>
            Password
            <input name="password" type="password" autocomplete="current-password" required />
          </label>
          <p class="problem" role="alert">
            {problem}
          </p>
          <button type="submit" class="primary" disabled={isBusy}>
            Log in
          </button>
        </form>
      )}
    </dialog>
  );
}
