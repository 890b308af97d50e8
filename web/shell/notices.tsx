import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Text } from '../parts/text.tsx';

interface Notice {
  readonly id: number;
  readonly tone: 'good' | 'bad';
  readonly text: string;
}

const SHOWN_MS = 8000;
const MAX_NOTICES = 4;
const notices = signal<readonly Notice[]>([]);
let nextId = 1;

/** Shows a sentence above the page. Failures stay until the user closes them. */
export function notify(tone: Notice['tone'], text: string): void {
  const id = nextId++;
  notices.value = [...notices.value, { id, tone, text }].slice(-MAX_NOTICES);
  if (tone === 'good') setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function Notices(): JSX.Element {
  return (
    <div class="notices" role="log" aria-label="Notices">
      {notices.value.map(({ id, tone, text }) => (
        <p key={id} class={`notice ${tone}`}>
          <Text>{text}</Text>
          <button
            type="button"
            class="quiet"
            aria-label="Close this notice"
            onClick={() => dismiss(id)}
          >
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
