import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { CommandLine } from '../../parts/command-line.tsx';
import { commandLine } from '../../parts/quote.ts';
import type { SectionProps } from './instance.tsx';

/** Connects a terminal to the serial console. Its code is loaded with the first console. */
export function ConsoleSection({ instance: { name, running } }: SectionProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const problem = useSignal('');
  const attempt = useSignal(0);
  const pid = running?.pid;
  const count = attempt.value;
  useEffect(() => {
    const element = place.current;
    if (element === null || pid === undefined) return;
    const stop = new AbortController();
    problem.value = '';
    const connect = async (): Promise<void> => {
      const { openTerminal } = await import('./terminal.ts');
      if (stop.signal.aborted) return;
      openTerminal(element, name, stop.signal, (reason) => {
        problem.value = reason;
      });
    };
    connect().catch(() => {
      problem.value = 'The terminal could not be loaded.';
    });
    return () => stop.abort();
  }, [name, pid, count]);
  return (
    <>
      {pid === undefined ? (
        <p class="soft">The instance does not run. Start it to reach its console.</p>
      ) : (
        <p class="soft">
          Ctrl+Alt+Q moves the focus out of the console. Press Enter if it stays empty.
        </p>
      )}
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem}{' '}
          <button
            type="button"
            onClick={() => {
              attempt.value += 1;
            }}
          >
            Connect again
          </button>
        </p>
      )}
      <div ref={place} class="terminal" />
      <CommandLine>{commandLine('gnt-instance', 'console', name)}</CommandLine>
    </>
  );
}
