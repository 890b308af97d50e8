import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiFailure } from '../../../client/api-client.ts';
import { backgroundApi } from '../../live/session.ts';
import type { KnownOpcode } from '../../commands/command-of.ts';
import { isImageName, type Resolved } from './install-form.ts';

/** Milliseconds without a key press before the node is asked. */
const PAUSE_MS = 500;

/** The node's answer to an operation that was not submitted yet. */
export interface Check {
  readonly state: 'idle' | 'checking' | 'fine' | 'refused';
  readonly failure: ApiFailure | undefined;
  /** Steps of the hooks that the installation would run. */
  readonly hookSteps: readonly string[];
}

const IDLE: Check = { state: 'idle', failure: undefined, hookSteps: [] };

/**
 * Asks the node whether it would accept an operation, after each change.
 * @param opcode undefined: the form has faults, and nothing is asked
 */
export function useCheck(opcode: KnownOpcode | undefined): Signal<Check> {
  const check = useSignal(IDLE);
  const text = JSON.stringify(opcode);
  useEffect(() => {
    if (opcode === undefined) {
      check.value = IDLE;
      return;
    }
    check.value = { ...check.peek(), state: 'checking' };
    return afterPause(async (signal) => {
      try {
        const { data } = await backgroundApi.POST('/v1/jobs', {
          params: { query: { 'dry-run': '1' } },
          body: opcode,
          signal,
        });
        const stages = data !== undefined && 'hooks' in data ? (data.hooks?.stages ?? []) : [];
        const hookSteps = stages.flatMap(({ stage, steps }) =>
          steps.map(({ label, file }) => `${stage}: ${label} of ${file}`),
        );
        if (!signal.aborted) check.value = { state: 'fine', failure: undefined, hookSteps };
      } catch (error) {
        if (signal.aborted) return;
        const failure = error instanceof ApiFailure ? error : undefined;
        check.value = { state: failure ? 'refused' : 'idle', failure, hookSteps: [] };
      }
    });
  }, [text]);
  return check;
}

/** An image by its name, or why it has no source. */
export interface Lookup {
  readonly image: Resolved | undefined;
  readonly failure: ApiFailure | undefined;
  /** The name that `image` and `failure` belong to. */
  readonly of: string;
}

/** Looks up the source and the checksum of an image whose name changes. */
export function useImage(typed: string): Signal<Lookup> {
  const lookup = useSignal<Lookup>({ image: undefined, failure: undefined, of: '' });
  const name = typed.trim();
  useEffect(() => {
    if (!isImageName(name)) {
      lookup.value = { image: undefined, failure: undefined, of: name };
      return;
    }
    return afterPause(async (signal) => {
      try {
        const { data } = await backgroundApi.POST('/v1/images/resolve', { body: { name }, signal });
        if (!signal.aborted) lookup.value = { image: data, failure: undefined, of: name };
      } catch (error) {
        const failure = error instanceof ApiFailure ? error : undefined;
        if (!signal.aborted) lookup.value = { image: undefined, failure, of: name };
      }
    });
  }, [name]);
  return lookup;
}

/** Runs work after a pause. The returned function stops it. */
function afterPause(work: (signal: AbortSignal) => Promise<void>): () => void {
  const stop = new AbortController();
  const timer = setTimeout(() => void work(stop.signal), PAUSE_MS);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
