import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { apiError } from '#shared/contract/api.ts';
import { jobEvent, jobRecord, type JobRecord } from '#shared/contract/job.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { ask } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import type { PointOperation } from './point-scene.ts';

export type Note = (text: string) => void;

/** Reports of a daemon, before or despite the fault. */
export interface Told {
  /** Id of the accepted job. */
  readonly id: number | null;
  /** The reported end of the job. */
  readonly end: JobRecord | null;
  readonly isDone: boolean;
}

export interface AskAtPoint {
  readonly note: Note;
  /** Returns whether the operation may be refused or fail with this code. */
  readonly isNamed: (code: string | undefined) => boolean;
  /** After a lost connection, wait for the daemon's end. */
  readonly isDaemonToEnd: boolean;
  /** Called when the daemon seems to be gone. */
  readonly onBroken?: () => Promise<void>;
}

/** Every operation here takes less time, so this time means a hang. */
const OPERATION_LIMIT_MS = 60_000;
const NOTHING: Told = { id: null, end: null, isDone: false };

/** Submits an operation to a daemon that a fault will hit. */
export async function askAtPoint(
  lab: Lab,
  operation: PointOperation,
  { note, isNamed, isDaemonToEnd, onBroken }: AskAtPoint,
): Promise<Told> {
  const node = lab.node();
  const gone = new AbortController();
  const limit = sleep(OPERATION_LIMIT_MS, 'late', { signal: gone.signal }).catch(() => 'gone');
  let told = NOTHING;
  /** @returns whether the answer was complete */
  const asking = async (): Promise<boolean> => {
    const { nodedSocket } = lab.paths;
    const body = operation.opcode();
    const path = operation.path ?? '/v1/jobs';
    const answer = await askSocket(nodedSocket, path, { method: 'POST', body });
    if (answer.status >= 300) {
      if (!isNamed(apiError.safeParse(JSON.parse(answer.body)).data?.code)) note(answer.body);
      return false;
    }
    if (operation.path !== undefined) {
      told = { ...NOTHING, isDone: true };
      return true;
    }
    const { id } = z.object({ id: z.number() }).parse(JSON.parse(answer.body));
    told = { ...NOTHING, id };
    if (operation.cancelAfter !== undefined) await cancelAfter(lab, id, operation.cancelAfter);
    const events = await askSocket(nodedSocket, `/v1/jobs/${id}/events`);
    const last = jobEvent.parse(JSON.parse(events.body.trim().split('\n').at(-1) ?? ''));
    if (last.type === 'end') told = { id, end: last.job, isDone: last.job.status === 'success' };
    return last.type === 'end';
  };
  const asked = asking().catch((error: unknown) => {
    if (!/ECONNRESET|EPIPE|ECONNREFUSED|socket hang up|aborted/.test(String(error)))
      note(String(error));
    return false;
  });
  const ended = await Promise.race([asked, limit]);
  gone.abort();
  if (ended === 'late') note('it hangs');
  // A lost connection is the first sign of the daemon's end.
  const isLost = ended === false && isDaemonToEnd;
  if (isLost) await onBroken?.();
  if (isLost && !hasExited(node)) await Promise.race([once(node, 'exit'), sleep(5000)]);
  return told;
}

/** Reads the stages from the record, which needs no event stream. */
async function cancelAfter(lab: Lab, id: number, stage: string): Promise<void> {
  const { nodedSocket } = lab.paths;
  for (;;) {
    const { body } = await askSocket(nodedSocket, '/v1/instances');
    if (body.includes(`"stage":"${stage}"`) && body.includes(`"jobId":${id}`)) {
      const isDone = new RegExp(`"stages":\\[[^\\]]*"stage":"${stage}"`).test(body);
      if (isDone) break;
    }
    const job = await ask(lab, `/v1/jobs/${id}`, jobRecord);
    if (job.endedAtMs !== null) return;
    await sleep(10);
  }
  await askSocket(nodedSocket, `/v1/jobs/${id}`, { method: 'DELETE' });
}

export function hasExited({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
