import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiFailure } from '../../client/api-client.ts';
import { readLines } from '../../client/lines.ts';
import { returns } from './cluster.ts';
import { openStream, session } from './session.ts';
import { isShown } from './shown.ts';

const RETRY_MS = 3000;

export interface Followed<State> {
  readonly value: ReadonlySignal<State>;
  /** Why the node refuses the stream; undefined while it is read. */
  readonly error: ReadonlySignal<ApiFailure | undefined>;
}

/**
 * Follows a stream of JSON lines while the component is shown, and connects again after a break.
 * @param path null: nothing is followed
 * @param reduce adds a line to the state; each connection begins with the first state
 */
export function useLines<Line, State>(
  path: string | null,
  first: State,
  reduce: (state: State, line: Line) => State,
): Followed<State> {
  return useStream(path, first, async (body, show) => {
    let current = first;
    for await (const line of readLines<Line>(body)) show((current = reduce(current, line)));
  });
}

/** Follows a text while the component is shown; the oldest characters go first. */
export function useText(path: string | null, maxCharacters = 500_000): Followed<string> {
  return useStream(path, '', async (body, show) => {
    let current = '';
    for await (const piece of body.pipeThrough(new TextDecoderStream()))
      show((current = (current + piece).slice(-maxCharacters)));
  });
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

function useStream<State>(
  path: string | null,
  first: State,
  read: (body: Body, show: (state: State) => void) => Promise<void>,
): Followed<State> {
  const value = useSignal(first);
  const error = useSignal<ApiFailure | undefined>(undefined);
  const login = session.value?.csrf;
  const isFollowed = login !== undefined && isShown.value;
  useEffect(() => {
    // After an expiry, the last state stays in view until the next login.
    if (login !== undefined) value.value = first;
  }, [path, login]);
  useEffect(() => {
    if (!isFollowed) return;
    error.value = undefined;
    if (path === null) return;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      const { body } = await openStream(path, stop.signal);
      if (body === null) return;
      await read(body, (state) => {
        if (!stop.signal.aborted) value.value = state;
      });
    };
    void repeat(follow, stop.signal).catch((failure: unknown) => {
      if (failure instanceof ApiFailure && !stop.signal.aborted) error.value = failure;
    });
    return () => stop.abort();
    // A node that was lost may have left this stream silent.
  }, [path, login, isFollowed, returns.value]);
  return { value, error };
}

/** Repeats after a break, not after a regular end. @throws ApiFailure if the node refuses */
async function repeat(follow: () => Promise<void>, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      await follow();
      return;
    } catch (error) {
      if (error instanceof ApiFailure && error.status >= 400 && error.status < 500) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
