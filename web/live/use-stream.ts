import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { readLines } from '../../client/lines.ts';
import { openStream } from './session.ts';

const RETRY_MS = 3000;

/**
 * Follows a stream of JSON lines while the component is shown, and connects again after a break.
 * @param path null: nothing is followed
 * @param reduce adds a line to the state; each connection begins with the first state
 */
export function useLines<Line, State>(
  path: string | null,
  first: State,
  reduce: (state: State, line: Line) => State,
): ReadonlySignal<State> {
  const state = useSignal(first);
  useEffect(() => {
    state.value = first;
    if (path === null) return;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      const { body } = await openStream(path, stop.signal);
      if (body === null) return;
      let current = first;
      for await (const line of readLines<Line>(body)) {
        current = reduce(current, line);
        state.value = current;
      }
    };
    void repeat(follow, stop.signal);
    return () => stop.abort();
  }, [path]);
  return state;
}

/** Follows a text while the component is shown; the oldest characters go first. */
export function useText(path: string | null, maxCharacters = 500_000): ReadonlySignal<string> {
  const text = useSignal('');
  useEffect(() => {
    text.value = '';
    if (path === null) return;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      const { body } = await openStream(path, stop.signal);
      if (body === null) return;
      let current = '';
      for await (const piece of body.pipeThrough(new TextDecoderStream())) {
        current = (current + piece).slice(-maxCharacters);
        text.value = current;
      }
    };
    void repeat(follow, stop.signal);
    return () => stop.abort();
  }, [path]);
  return text;
}

/** Repeats after a failure, not after a regular end. */
async function repeat(follow: () => Promise<void>, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      await follow();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
