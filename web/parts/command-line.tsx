import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';

const COPIED_MS = 2000;

/** Shows the command that does the same as this page, with a button to copy it. */
export function CommandLine({ children }: { readonly children: string }): JSX.Element {
  const isCopied = useSignal(false);
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(children);
    } catch {
      // The browser refuses, for example by a policy. The user can press Ctrl+C.
      if (code.current !== null) getSelection()?.selectAllChildren(code.current);
      return;
    }
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, COPIED_MS);
  };
  return (
    <div class="command" role="group" aria-label="Equivalent command">
      <code ref={code}>{children}</code>
      <button type="button" class="quiet" onClick={() => void copy()}>
        {isCopied.value ? 'Copied' : 'Copy'}
      </button>
      <span class="unseen" role="status">
        {isCopied.value ? 'Command copied' : ''}
      </span>
    </div>
  );
}
