import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { jobEvent, jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addOs, ask, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { createSeededRandom, type SeededRandom } from '../lab/seeded-random.ts';
import { findRemains } from './find-remains.ts';
import { findViolations } from './find-violations.ts';
import { armTrap, type KillPoint } from './kill-at-call.ts';
import { MortalImageServer } from './mortal-image-server.ts';
import { createProgramScene } from './program-points.ts';
import { createPointOperations, type PointOperation, settled } from './point-operations.ts';

export interface PointsOptions {
  readonly say: (line: string) => void;
  /** Operations by name; all when there are none. */
  readonly only?: readonly string[];
  /** A sample: points are drawn, and none begins after so many milliseconds. */
  readonly sample?: { readonly seed: number; readonly limitMs: number };
}

export interface PointsReport {
  /** At which the daemon was killed. */
  readonly points: number;
  readonly violations: readonly string[];
}

/** What a thread of noded calls to change something, or to say that it has. */
const CALLS: readonly Pick<KillPoint, 'thread' | 'call'>[] = [
  ...['fsync', 'pwrite64', 'writev', 'clone'].map((call) => ({ thread: 'loop' as const, call })),
  ...['fsync', 'mkdir', 'rename', 'unlink', 'rmdir', 'ftruncate'].map((call) => ({
    ...{ thread: 'files' as const, call },
  })),
];
const SETTLE_MS = 10_000;
/** No operation here takes as long; one that does hangs. */
const OPERATION_LIMIT_MS = 60_000;
/** More of one kind are made by no operation: one that hurts each time has another reason. */
const MAX_CALLS = 500;
/** Of a sample: the so-manieth call is drawn from this many. */
const USUAL_CALLS = 6;

/**
 * Kills noded at each call of each thread while it carries out each operation, starts it again, and
 * looks whether all is as it has to be.
 */
export async function runPoints(options: PointsOptions): Promise<PointsReport> {
  // One thread for file system calls: with more of them nobody could count.
  process.env['UV_THREADPOOL_SIZE'] = '1';
  const lab = await createLab('gnt-points');
  const server = new MortalImageServer(Buffer.alloc(1024 * 1024, 7));
  try {
    await server.start();
    await lab.startNode();
    await addOs(lab, 'quick', ['exit 0']);
    await succeed(lab, 'gnt-os', 'trust', 'quick');
    const report = await new Points(lab, server, options).run();
    if (options.sample !== undefined) return report;
    const more = await runProgramPoints(options);
    return {
      points: report.points + more.points,
      violations: [...report.violations, ...more.violations],
    };
  } finally {
    await server.kill();
    await lab.dispose();
  }
}

/** The same of what is not done by jobs. */
async function runProgramPoints({ say, only = [] }: PointsOptions): Promise<PointsReport> {
  await using scene = await createProgramScene();
  const violations: string[] = [];
  let points = 0;
  for (const operation of scene.operations) {
    const { name, calls } = operation;
    if (only.length > 0 && !only.includes(name)) continue;
    const before = points;
    for (const call of calls) {
      for (let when = 1; when < MAX_CALLS; when += 1) {
        const { isHurt, wrong } = await operation.strike({ ...call, when });
        const title = `${name}, ${call.thread} ${call.call} ${when}`;
        for (const text of wrong) say(`VIOLATION ${title}: ${text}`);
        violations.push(...wrong.map((text) => `${title}: ${text}`));
        if (!isHurt) break;
        points += 1;
      }
    }
    say(`${name}: ${points - before} points`);
  }
  return { points, violations };
}

interface Told {
  /** Accepted: the job that was promised. */
  readonly id: number | null;
  /** The end that was told, if it was. */
  readonly end: JobRecord | null;
}

class Points {
  readonly #lab: Lab;
  readonly #options: PointsOptions;
  readonly #operations: readonly PointOperation[];
  readonly #violations: string[] = [];
  #points = 0;

  constructor(lab: Lab, server: MortalImageServer, options: PointsOptions) {
    this.#lab = lab;
    this.#options = options;
    const { only = [] } = options;
    this.#operations = createPointOperations(lab, server).filter(
      ({ name }) => only.length === 0 || only.includes(name),
    );
  }

  async run(): Promise<PointsReport> {
    const { sample } = this.#options;
    if (sample === undefined) await this.#all();
    else await this.#some(createSeededRandom(sample.seed), performance.now() + sample.limitMs);
    const status = await this.#lab.stopNode();
    if (status !== 0) this.#note(`gnt-noded ended with status ${status}`);
    for (const leftover of await this.#lab.findLeftovers()) this.#note(leftover);
    return { points: this.#points, violations: this.#violations };
  }

  async #all(): Promise<void> {
    for (const operation of this.#operations) {
      const before = this.#points;
      for (const call of CALLS) {
        let when = 1;
        while (await this.#strike(operation, { ...call, when })) when += 1;
      }
      this.#options.say(`${operation.name}: ${this.#points - before} points`);
    }
  }

  async #some(random: SeededRandom, endMs: number): Promise<void> {
    const drawn = <T>(values: readonly T[]): T =>
      values[Math.floor(random.next() * values.length)] as T; // the lists are not empty
    while (performance.now() < endMs) {
      const when = 1 + Math.floor(random.next() * USUAL_CALLS);
      await this.#strike(drawn(this.#operations), { ...drawn(CALLS), when });
    }
  }

  #note(violation: string): void {
    this.#violations.push(violation);
    this.#options.say(`VIOLATION ${violation}`);
  }

  /** @returns whether there was such a point */
  async #strike(operation: PointOperation, point: KillPoint): Promise<boolean> {
    const title = `${operation.name}, ${point.thread} ${point.call} ${point.when}`;
    const note = (text: string): void => this.#note(`${title}: ${text}`);
    await operation.prepare();
    const node = this.#lab.node();
    const trap = await armTrap(node.pid ?? 0, point);
    const told = await this.#ask(operation, note).finally(() => trap.disarm());
    const isKilled = hasExited(node);
    if (isKilled) {
      this.#points += 1;
      await this.#lab.startNode();
    }
    await this.#judge(operation, told, note);
    return isKilled;
  }

  async #ask(operation: PointOperation, note: (text: string) => void): Promise<Told> {
    const node = this.#lab.node();
    const gone = new AbortController();
    const limit = sleep(OPERATION_LIMIT_MS, 'late', { signal: gone.signal }).catch(() => 'gone');
    let id: number | null = null;
    const asking = async (): Promise<JobRecord | null> => {
      const { nodedSocket } = this.#lab.paths;
      const body = operation.opcode();
      const answer = await askSocket(nodedSocket, '/v1/jobs', { method: 'POST', body });
      if (answer.status !== 202) throw new Error(answer.body);
      id = z.object({ id: z.number() }).parse(JSON.parse(answer.body)).id;
      if (operation.cancelAfter !== undefined) await this.#cancelAfter(id, operation.cancelAfter);
      const events = await askSocket(nodedSocket, `/v1/jobs/${id}/events`);
      const last = jobEvent.parse(JSON.parse(events.body.trim().split('\n').at(-1) ?? ''));
      return last.type === 'end' ? last.job : null;
    };
    const asked = asking().catch((error: unknown) => {
      if (!/ECONNRESET|EPIPE|ECONNREFUSED|socket hang up|aborted/.test(String(error)))
        note(String(error));
      return null;
    });
    const end = await Promise.race([asked, limit]);
    gone.abort();
    if (end === 'late') note('it hangs');
    // A connection that broke is the first sign of the daemon's end.
    if (end === null && !hasExited(node)) await Promise.race([once(node, 'exit'), sleep(5000)]);
    return { id, end: typeof end === 'string' ? null : end };
  }

  /** The install log's stages are in the record, and need no stream. */
  async #cancelAfter(id: number, stage: string): Promise<void> {
    const { nodedSocket } = this.#lab.paths;
    for (;;) {
      const { body } = await askSocket(nodedSocket, '/v1/instances');
      if (body.includes(`"stage":"${stage}"`) && body.includes(`"jobId":${id}`)) {
        const isDone = new RegExp(`"stages":\\[[^\\]]*"stage":"${stage}"`).test(body);
        if (isDone) break;
      }
      const job = await ask(this.#lab, `/v1/jobs/${id}`, jobRecord);
      if (job.endedAtMs !== null) return;
      await sleep(10);
    }
    await askSocket(nodedSocket, `/v1/jobs/${id}`, { method: 'DELETE' });
  }

  async #judge(
    operation: PointOperation,
    { id, end }: Told,
    note: (text: string) => void,
  ): Promise<void> {
    if (id !== null) {
      const { status, body } = await askSocket(this.#lab.paths.nodedSocket, `/v1/jobs/${id}`);
      const job = status === 200 ? jobRecord.parse(JSON.parse(body)) : null;
      if (job === null) note(`job ${id}, which was accepted, is lost`);
      if (end !== null && job?.status !== end.status)
        note(`job ${id} was told as ${end.status}, and is ${job?.status}`);
    }
    const wrong = await settled(
      async () => [
        ...(await findViolations(this.#lab.paths)),
        ...(await findRemains(this.#lab)),
        ...(await operation.judge()),
      ],
      SETTLE_MS,
    );
    for (const text of wrong) note(text);
  }
}

function hasExited({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
