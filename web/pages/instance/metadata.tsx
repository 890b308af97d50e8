import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiFailure } from '../../../client/api-client.ts';
import { openStream } from '../../live/session.ts';
import { useLoaded } from '../../live/use-loaded.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { Failure } from '../../parts/failure.tsx';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import { ancestorsOf, entriesOf, joinPath } from './metadata-paths.ts';
import type { SectionProps } from './instance.tsx';

const MAX_CHARACTERS = 200_000;

/** Browses the metadata as the guest reads it. */
export function MetadataSection({ instance }: SectionProps): JSX.Element {
  const { name, communication, running } = instance;
  const path = useSignal('/');
  const { value, error } = useLoaded(
    async (signal) => {
      if (!communication) return undefined;
      const encoded = path.value.split('/').map(encodeURIComponent).join('/');
      const target = `/v1/instances/${encodeURIComponent(name)}/metadata${encoded}?partial=1`;
      const response = await openStream(target, signal);
      const text = await response.text();
      return {
        path: path.value,
        text: text.slice(0, MAX_CHARACTERS),
        isLong: text.length > MAX_CHARACTERS,
      };
    },
    [name, communication, path.value, running?.pid],
  );
  if (!communication)
    return (
      <>
        <p class="soft">The guest has no metadata: its channel to the node is off. Turn it on:</p>
        <CommandLine>
          {commandLine('gnt-instance', 'modify', '--communication', 'yes', name)}
        </CommandLine>
      </>
    );
  const shown = value.value?.path === path.value ? value.value : undefined;
  const entries = shown === undefined ? null : entriesOf(path.value, shown.text);
  return (
    <>
      <nav aria-label="Path in the metadata" class="path mono">
        {ancestorsOf(path.value).map(({ to, word }) => (
          <button
            key={to}
            type="button"
            class="quiet"
            onClick={() => {
              path.value = to;
            }}
          >
            {word}
          </button>
        ))}
      </nav>
      {error.value !== undefined && <Failure error={explain(error.value)} />}
      {entries !== null && (
        <ul class="entries mono">
          {entries.map((entry) => (
            <li key={entry}>
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  path.value = joinPath(path.value, entry);
                }}
              >
                <Text>{entry}</Text>
              </button>
            </li>
          ))}
        </ul>
      )}
      {shown !== undefined && entries === null && (
        <pre class="log" tabIndex={0} aria-label={`Content of ${path.value}`}>
          <Text>{shown.text}</Text>
          {shown.isLong && '\n… shortened'}
        </pre>
      )}
      <CommandLine>{commandLine('gnt-instance', 'metadata', name, path.value)}</CommandLine>
    </>
  );
}

function explain(error: unknown): unknown {
  return error instanceof ApiFailure && error.status === 404
    ? new ApiFailure(404, { message: 'the metadata has no such path', code: error.code })
    : error;
}
