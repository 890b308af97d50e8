import { effect, signal } from '@preact/signals';
import { commandOf, type KnownOpcode } from '../commands/command-of.ts';
import { notify } from '../shell/notices.tsx';
import { jobs } from './cluster.ts';
import { api } from './session.ts';

const ENDED: ReadonlySet<string> = new Set(['success', 'error', 'canceled']);
/** The commands of jobs that this page submitted and whose end was not reported yet. */
const pending = signal<ReadonlyMap<number, string>>(new Map());

/**
 * Submits an operation. Notices report its job, the end of the job and the equivalent command.
 * @throws ApiFailure if the node refuses it
 */
export async function submit(opcode: KnownOpcode): Promise<void> {
  const { data } = await api.POST('/v1/jobs', { body: opcode });
  if (data === undefined || !('id' in data)) throw new Error('the node did not name a job');
  const command = commandOf(opcode).text;
  notify('busy', `Job ${data.id}, ${opcode.opcode}, has begun`, { command, key: keyOf(data.id) });
  pending.value = new Map([...pending.value, [data.id, command]]);
}

function keyOf(job: number): string {
  return `job ${job}`;
}

/** Reports the ends of submitted jobs. */
export function reportEnds(): void {
  effect(() => {
    const own = pending.value;
    if (own.size === 0) return;
    const ended = jobs.items.value.filter(({ id, status }) => own.has(id) && ENDED.has(status));
    if (ended.length === 0) return;
    for (const { id, status, summary, error } of ended) {
      const command = own.get(id);
      const isGood = status === 'success';
      const result = isGood ? 'success' : (error?.message ?? status);
      notify(isGood ? 'good' : 'bad', `Job ${id}, ${summary}: ${result}`, {
        command,
        key: keyOf(id),
      });
    }
    const done = new Set(ended.map(({ id }) => id));
    pending.value = new Map([...own].filter(([id]) => !done.has(id)));
  });
}
