import { effect, signal } from '@preact/signals';
import type { Schemas } from '../../client/api-client.ts';
import { messageOf } from '../parts/failure.tsx';
import { notify } from '../shell/notices.tsx';
import { jobs } from './cluster.ts';
import { api } from './session.ts';

export type Opcode = Schemas['Opcode'];

const ENDED: ReadonlySet<string> = new Set(['success', 'error', 'canceled']);
/** Jobs that this page submitted and whose end was not reported yet. */
const pending = signal<ReadonlySet<number>>(new Set<number>());

/**
 * Submits an operation. A notice reports the end of its job.
 * @returns the number of the job
 * @throws ApiFailure if the node refuses it
 */
export async function submit(opcode: Opcode): Promise<number> {
  const { data } = await api.POST('/v1/jobs', { body: opcode });
  if (data === undefined || !('id' in data)) throw new Error('the node did not name a job');
  pending.value = new Set<number>([...pending.value, data.id]);
  return data.id;
}

/** Submits an operation and reports a refusal as a notice. */
export async function submitOrNotify(opcode: Opcode): Promise<number | undefined> {
  try {
    return await submit(opcode);
  } catch (error) {
    notify('bad', messageOf(error));
    return undefined;
  }
}

/** Reports the ends of submitted jobs. */
export function reportEnds(): void {
  effect(() => {
    const own = pending.value;
    if (own.size === 0) return;
    const ended = jobs.items.value.filter(({ id, status }) => own.has(id) && ENDED.has(status));
    if (ended.length === 0) return;
    for (const { id, status, summary, error } of ended) {
      if (status === 'success') notify('good', `Job ${id}, ${summary}: success`);
      else notify('bad', `Job ${id}, ${summary}: ${error?.message ?? status}`);
    }
    const done = new Set(ended.map(({ id }) => id));
    pending.value = new Set([...own].filter((id) => !done.has(id)));
  });
}
