import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { CommandLine } from '../parts/command-line.tsx';
import { Text } from '../parts/text.tsx';

interface Notice {
  readonly id: number;
  readonly tone: 'good' | 'busy' | 'bad';
  readonly text: string;
  /** The command that is equivalent to the change. */
  readonly command?: string | undefined;
  /** A later notice with the same key replaces this one. */
  readonly key?: string;
}

const SHOWN_MS = 15_000;
const MAX_NOTICES = 4;
const notices = signal<readonly Notice[]>([]);
let nextId = 1;

/** Shows a sentence above the page. Only good news disappears by itself. */
export function notify(
  tone: Notice['tone'],
  text: string,
  more: Pick<Notice, 'command' | 'key'> = {},
): void {
  const id = nextId++;
  const others = notices.value.filter(({ key }) => key === undefined || key !== more.key);
  notices.value = [...others, { id, tone, text, ...more }].slice(-MAX_NOTICES);
  if (tone === 'good') setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function Notices(): JSX.Element {
  return (
    <div class="notices" role="log" aria-label="Notices">
      {notices.value.map(({ id, tone, text, command }) => (
        <div key={id} class={`notice ${tone}`}>
          <p>
            <Text>{text}</Text>
          </p>
          <button
            type="button"
            class="quiet"
            aria-label="Close this notice"
            onClick={() => dismiss(id)}
          >
            ×
          </button>
          {command !== undefined && <CommandLine>{command}</CommandLine>}
        </div>
      ))}
    </div>
  );
}
