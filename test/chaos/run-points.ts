import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addOs, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { createSeededRandom, type SeededRandom } from '../lab/seeded-random.ts';
import { isOfMachine, listMachines } from './find-machines.ts';
import { findRemains } from './find-remains.ts';
import { findViolations } from './find-violations.ts';
import { armTrap, callsOf, type KillPoint } from './kill-at-call.ts';
import { MortalImageServer } from './mortal-image-server.ts';
import { armPowerCut, describeUnsynced } from './power-cut.ts';
import { createProgramScene } from './program-points.ts';
import { askAtPoint, hasExited, type Note, type Told } from './ask-at-point.ts';
import { createDiskOperations } from './point-disks.ts';
import { createMachineScene } from './point-machines.ts';
import { createPointOperations } from './point-operations.ts';
import { createRecordOperations, writeContents } from './point-records.ts';
import { createVolumeScene } from './point-volumes.ts';
import { createPointScene, OS, type PointOperation, settled, WRITTEN } from './point-scene.ts';

/**
 * The fault of noded at a point: SIGKILL, a power cut that also undoes unsynced writes, or a full
 * disk for one call or all later ones.
 */
export type Hazard = 'kill' | 'power-cut' | 'full-disk';

export interface PointsOptions {
  readonly say: (line: string) => void;
  /** Names of operations; all without it. */
  readonly only?: readonly string[];
  readonly hazard: Hazard;
  /** Draws random points, until this time in milliseconds is over. */
  readonly sample?: { readonly seed: number; readonly limitMs: number };
}

export interface PointsReport {
  /** Number of points at which the daemon was hit. */
  readonly points: number;
  readonly violations: readonly string[];
}

type ThreadCall = Pick<KillPoint, 'thread' | 'call'>;

/** System calls of noded's threads that change or confirm something. */
const CALLS: Readonly<Record<Hazard, readonly ThreadCall[]>> = {
  kill: [
    ...callsOf('loop', 'fsync', 'pwrite64', 'writev', 'clone'),
    ...callsOf('files', 'fsync', 'mkdir', 'rename', 'unlink', 'rmdir', 'ftruncate'),
  ],
  // Between two syncs of a thread, a cut at any point loses the same.
  'power-cut': [...callsOf('loop', 'fsync'), ...callsOf('files', 'fsync')],
  // Without `write`, which threads also use to wake each other; fsync can report a file's full
  // disk.
  'full-disk': [
    ...callsOf('loop', 'pwrite64', 'ftruncate'),
    ...callsOf('files', 'pwrite64', 'ftruncate', 'mkdir', 'rename', 'link', 'fallocate'),
    ...callsOf('files', 'copy_file_range', 'fsync'),
  ],
};
/** Allowed errors of an operation with a full disk. */
const NAMED_FULL = new Set(['DISK_FULL', 'DISK_SPACE']);
/** Duration of a full disk. The daemon then writes the ends of jobs that it could not write. */
const FULL_MS = 1500;
/** Share of power cuts in a sample that come after the reported success. */
const SHARE_OF_ENDS = 0.3;
/** Characters of the daemon's log. */
const LOG_TAIL = 3000;
const SETTLE_MS = 10_000;
/** No operation makes more calls of one kind, so more hits have another cause. */
const MAX_CALLS = 500;
/** A sample draws the number of the call up to this one. */
const USUAL_CALLS = 6;

/**
 * Kills noded at each call of each thread during each operation, restarts it, and checks the state.
 */
export async function runPoints(options: PointsOptions): Promise<PointsReport> {
  // With a single thread for file system calls, the number of a call is deterministic.
  process.env['UV_THREADPOOL_SIZE'] = '1';
  const report = await runHostPoints(options);
  if (options.sample !== undefined || options.hazard !== 'kill') return report;
  const reports = [report, await runMachinePoints(options), await runProgramPoints(options)];
  return {
    points: reports.reduce((sum, { points }) => sum + points, 0),
    violations: reports.flatMap(({ violations }) => violations),
  };
}

/** Runs the operations that need no QEMU. */
async function runHostPoints(options: PointsOptions): Promise<PointsReport> {
  const lab = await createLab('gnt-points');
  const server = new MortalImageServer(Buffer.alloc(1024 * 1024, 7));
  try {
    await server.start();
    const files = await writeContents(lab);
    await startWithOs(lab);
    const scene = createPointScene(lab);
    const operations = [
      ...createPointOperations(scene, server),
      ...createDiskOperations(scene),
      ...createRecordOperations(scene, files),
    ];
    return await new Points(lab, operations, options).run();
  } finally {
    await server.kill();
    await lab.dispose();
  }
}

/** Runs the operations that need QEMU, or a file system with reflinks. */
async function runMachinePoints(options: PointsOptions): Promise<PointsReport> {
  await using machines = await createMachineScene();
  await startWithOs(machines.lab);
  return await new Points(machines.lab, machines.operations, options).run();
}

/** Runs the operations on LVM volumes. The caller must have its own mount namespace. */
export async function runVolumePoints(options: PointsOptions): Promise<PointsReport> {
  process.env['UV_THREADPOOL_SIZE'] = '1';
  const server = new MortalImageServer(Buffer.alloc(1024 * 1024, 7));
  await using volumes = await createVolumeScene(server);
  try {
    await server.start();
    await startWithOs(volumes.lab);
    return await new Points(volumes.lab, volumes.operations, options).run();
  } finally {
    await server.kill();
  }
}

async function startWithOs(lab: Lab): Promise<void> {
  await lab.startNode();
  await addOs(lab, OS, [`echo ${WRITTEN} | dd of="$DISK_0_PATH" conv=notrunc`]);
  await succeed(lab, 'gnt-os', 'trust', OS);
}

/** Runs the operations outside of jobs. */
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

class Points {
  readonly #lab: Lab;
  readonly #options: PointsOptions;
  readonly #operations: readonly PointOperation[];
  readonly #violations: string[] = [];
  readonly #calls: readonly ThreadCall[];
  #points = 0;

  constructor(lab: Lab, operations: readonly PointOperation[], options: PointsOptions) {
    this.#lab = lab;
    this.#options = options;
    const { only = [] } = options;
    this.#calls = CALLS[options.hazard];
    this.#operations = operations.filter(({ name }) => only.length === 0 || only.includes(name));
  }

  async run(): Promise<PointsReport> {
    const { sample } = this.#options;
    if (sample === undefined) await this.#all();
    else await this.#some(createSeededRandom(sample.seed), performance.now() + sample.limitMs);
    await this.#removeAll();
    const status = await this.#lab.stopNode();
    if (status !== 0) this.#note(`gnt-noded ended with status ${status}`);
    const { disksDir } = this.#lab.paths;
    for (const leftover of await this.#lab.findLeftovers())
      if (!leftover.includes(` ${disksDir} `)) this.#note(leftover);
    return { points: this.#points, violations: this.#violations };
  }

  /** Removes all instances: QEMU processes survive the daemon. */
  async #removeAll(): Promise<void> {
    for (const list of ['/v1/instances', '/v1/orphans'])
      for (const { name } of await createPointScene(this.#lab).list(list)) {
        const asked = { opcode: 'INSTANCE_REMOVE', name, shutdownTimeoutS: 0 };
        const { error } = await submit(this.#lab, asked);
        if (error !== null) this.#note(`${String(name)} is not removed: ${error.message}`);
      }
  }

  async #all(): Promise<void> {
    for (const operation of this.#operations) {
      const before = this.#points;
      if (this.#options.hazard === 'power-cut') await this.#strike(operation, null);
      for (const call of operation.calls ?? this.#calls) {
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
      const point = { ...drawn(this.#calls), when };
      const isEnd = this.#options.hazard === 'power-cut' && random.next() < SHARE_OF_ENDS;
      await this.#strike(drawn(this.#operations), isEnd ? null : point);
    }
  }

  #note(violation: string): void {
    this.#violations.push(violation);
    this.#options.say(`VIOLATION ${violation}`);
  }

  /** @param point null: after the reported success @returns whether the point exists */
  async #strike(operation: PointOperation, point: KillPoint | null): Promise<boolean> {
    const title = `${operation.name}, ${point ? `${point.thread} ${point.call} ${point.when}` : 'end'}`; // prettier-ignore
    const note = (text: string): void => this.#note(`${title}: ${text}`);
    await operation.prepare();
    const { hazard } = this.#options;
    if (point === null || hazard === 'power-cut') return this.#cutPower(operation, point, note);
    return hazard === 'kill'
      ? this.#kill(operation, point, note)
      : this.#fill(operation, point, note);
  }

  async #kill(operation: PointOperation, point: KillPoint, note: Note): Promise<boolean> {
    const node = this.#lab.node();
    const trap = await armTrap(node.pid ?? 0, point);
    const told = await this.#ask(operation, note).finally(() => trap.disarm());
    return this.#startAndJudge(operation, told, hasExited(node), note);
  }

  async #cutPower(
    operation: PointOperation,
    point: KillPoint | null,
    note: Note,
  ): Promise<boolean> {
    const node = this.#lab.node();
    await using power = await armPowerCut(this.#lab, point);
    const told = await this.#ask(operation, note, () => power.letGo());
    const isCut = point === null || hasExited(node);
    if (!isCut) await power.disarm();
    const lost = isCut ? describeUnsynced(await power.cut()) : '';
    return await this.#startAndJudge(operation, told, isCut, (text) => note(`${text} (${lost})`));
  }

  async #fill(operation: PointOperation, point: KillPoint, note: Note): Promise<boolean> {
    for (const blow of ['full-once', 'full-from-then-on'] as const) {
      if (blow !== 'full-once') await operation.prepare();
      const node = this.#lab.node();
      const trap = await armTrap(node.pid ?? 0, point, blow);
      const room = sleep(FULL_MS).then(() => trap.disarm());
      const told = await this.#ask(operation, note);
      await room;
      if (hasExited(node)) {
        const log = await readFile(join(this.#lab.paths.root, 'noded.log'), 'utf8');
        note(`${blow}: gnt-noded has ended\n${log.slice(-LOG_TAIL)}`);
        return this.#startAndJudge(operation, told, true, note);
      }
      if (!trap.isSprung()) return false;
      this.#points += 1;
      await this.#judge(operation, told, (text) => note(`${blow}: ${text}`));
    }
    return true;
  }

  async #startAndJudge(
    operation: PointOperation,
    told: Told,
    isHurt: boolean,
    note: Note,
  ): Promise<boolean> {
    if (isHurt) {
      this.#points += 1;
      try {
        await this.#lab.startNode();
      } catch (error) {
        note(`it does not start: ${String(error)}`);
        throw error;
      }
    }
    await this.#judge(operation, told, note);
    return isHurt;
  }

  #ask(operation: PointOperation, note: Note, onBroken?: () => Promise<void>): Promise<Told> {
    const { hazard } = this.#options;
    return askAtPoint(this.#lab, operation, {
      note,
      isNamed: (code) => this.#isNamed(code),
      isDaemonToEnd: hazard !== 'full-disk',
      ...(onBroken && { onBroken }),
    });
  }

  #isNamed(code: string | undefined): boolean {
    return this.#options.hazard === 'full-disk' && NAMED_FULL.has(code ?? '');
  }

  async #judgeJob(id: number, end: JobRecord | null, note: Note): Promise<void> {
    const { status, body } = await askSocket(this.#lab.paths.nodedSocket, `/v1/jobs/${id}`);
    const job = status === 200 ? jobRecord.parse(JSON.parse(body)) : null;
    if (job === null) note(`job ${id}, which was accepted, is lost`);
    const error = end?.error ?? job?.error;
    if (this.#options.hazard === 'full-disk' && error && !this.#isNamed(error.code))
      note(`it failed as ${error.code}: ${error.message}`);
    if (end !== null && job?.status !== end.status)
      note(`job ${id} was told as ${end.status}, and is ${job?.status}`);
  }

  async #judge(operation: PointOperation, told: Told, note: Note): Promise<void> {
    await this.#look(operation, told, note);
    if (!operation.isRepeated || told.isDone) return;
    const end = await submit(this.#lab, operation.opcode());
    if (end.error !== null) note(`repeated: ${end.error.message}`);
    const isDone = end.error === null;
    await this.#look(operation, { id: end.id, end, isDone }, (text) => note(`repeated: ${text}`));
  }

  async #look(operation: PointOperation, { id, end, isDone }: Told, note: Note): Promise<void> {
    if (id !== null) await this.#judgeJob(id, end, note);
    const wrong = await settled(async () => {
      const machines = await listMachines(this.#lab);
      const found = await findViolations(this.#lab.paths);
      return [
        ...found.filter((text) => !isOfMachine(text, machines)),
        ...(await findRemains(this.#lab, machines)),
        ...(await operation.judge(isDone)),
      ];
    }, operation.settleMs ?? SETTLE_MS);
    for (const text of wrong) note(text);
  }
}
