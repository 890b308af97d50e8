import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { jobEvent } from '#shared/contract/job.ts';
import { metadStatus, type MetadStatus } from '#shared/contract/metad-control.ts';
import { run } from '#shared/process/run.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addOs, ask, infoOf, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { createSeededRandom } from '../lab/seeded-random.ts';
import { findViolations } from './find-violations.ts';
import { armTrap, type KillPoint } from './kill-at-call.ts';
import { settled } from './point-scene.ts';
import type { PointsReport } from './run-points.ts';

export interface MetadPointsOptions {
  readonly say: (line: string) => void;
  /** Names of operations; all without it. */
  readonly only?: readonly string[];
  /** Number of random strikes; all points without it. */
  readonly sample?: { readonly seed: number; readonly strikes: number };
}

/** Calls of metad for a view: it binds sockets, and talks to noded. */
const CALLS = ['write', 'writev', 'socket', 'bind', 'listen', 'close'];
/** A sample draws the number of the call up to this one. */
const USUAL_CALLS = 5;
const SETTLE_MS = 30_000;
const NAME = 'guest.example.com';
const SECRET = 'api-key';
const record = z.object({ pid: z.number() });

interface Operation {
  readonly name: string;
  /** Whether the instance must run before the operation. */
  readonly isOfRunning: boolean;
  readonly opcode: (round: number) => object;
}

const OPERATIONS: readonly Operation[] = [
  {
    name: 'startup',
    isOfRunning: false,
    opcode: () => ({
      opcode: 'INSTANCE_STARTUP',
      name: NAME,
      osParametersSecret: { [SECRET]: 'x-x-x-x' },
    }),
  },
  {
    name: 'modify',
    isOfRunning: true,
    opcode: (round) => ({ opcode: 'INSTANCE_SET_PARAMS', name: NAME, tags: [`t${round}`] }),
  },
  {
    name: 'modify a secret',
    isOfRunning: true,
    opcode: (round) => ({
      opcode: 'INSTANCE_SET_PARAMS',
      name: NAME,
      osParametersSecret: { [SECRET]: `secret${round}` },
    }),
  },
  {
    name: 'shutdown',
    isOfRunning: true,
    opcode: () => ({ opcode: 'INSTANCE_SHUTDOWN', name: NAME, timeoutS: 0 }),
  },
];

/**
 * Kills metad at each of these calls while an instance's view is published, changed and removed.
 * Checks that each job ends, and that the guest has its channel.
 */
export async function runMetadPoints(options: MetadPointsOptions): Promise<PointsReport> {
  const lab = await createLab('gnt-mp');
  try {
    await lab.startNode();
    await addOs(lab, 'quick', ['exit 0']);
    await succeed(lab, 'gnt-os', 'trust', 'quick');
    // The guest is firmware without a boot disk, which suffices for a channel.
    const machine = ['-B', 'memory=32', '-s', '1M', '--no-nics', '-C', 'yes', '--no-start'];
    await succeed(lab, 'gnt-instance', 'add', '--no-install', '-o', 'quick', ...machine, NAME);
    return await new MetadPoints(lab, options).run();
  } finally {
    await lab.dispose();
  }
}

class MetadPoints {
  readonly #lab: Lab;
  readonly #options: MetadPointsOptions;
  readonly #violations: string[] = [];
  #points = 0;
  #round = 0;

  constructor(lab: Lab, options: MetadPointsOptions) {
    this.#lab = lab;
    this.#options = options;
  }

  async run(): Promise<PointsReport> {
    const { sample, say } = this.#options;
    if (sample !== undefined) await this.#some(sample);
    else {
      const { only = [] } = this.#options;
      for (const operation of OPERATIONS) {
        if (only.length > 0 && !only.includes(operation.name)) continue;
        const before = this.#points;
        for (const call of CALLS)
          for (let when = 1; await this.#strike(operation, call, when); when += 1);
        say(`metad, ${operation.name}: ${this.#points - before} points`);
      }
    }
    await this.#bring(false);
    await submit(this.#lab, { opcode: 'INSTANCE_REMOVE', name: NAME });
    if ((await this.#lab.stopNode()) !== 0) this.#note('gnt-noded does not stop');
    for (const leftover of await this.#lab.findLeftovers()) this.#note(leftover);
    return { points: this.#points, violations: this.#violations };
  }

  async #some({ seed, strikes }: NonNullable<MetadPointsOptions['sample']>): Promise<void> {
    const random = createSeededRandom(seed);
    const drawn = <T>(values: readonly T[]): T =>
      values[Math.floor(random.next() * values.length)] as T; // the lists are not empty
    for (let strike = 0; strike < strikes; strike += 1)
      await this.#strike(drawn(OPERATIONS), drawn(CALLS), 1 + Math.floor(random.next() * USUAL_CALLS)); // prettier-ignore
  }

  #note(violation: string): void {
    this.#violations.push(violation);
    this.#options.say(`VIOLATION ${violation}`);
  }

  /** @returns whether the point exists */
  async #strike(operation: Operation, call: string, when: number): Promise<boolean> {
    const title = `metad, ${operation.name}, ${call} ${when}`;
    await this.#bring(operation.isOfRunning);
    const { pid } = record.parse(
      JSON.parse(await readFile(this.#lab.paths.metadRecordFile, 'utf8')),
    );
    const point: KillPoint = { thread: 'loop', call, when };
    const trap = await armTrap(pid, point);
    const end = await this.#do(operation.opcode((this.#round += 1)));
    const isHurt = !existsSync(`/proc/${pid}/exe`);
    await trap.disarm();
    if (isHurt) this.#points += 1;
    const wrong = await settled(() => this.#judge(end), SETTLE_MS);
    for (const text of wrong) this.#note(`${title}: ${text}, after ${end}`);
    return isHurt;
  }

  /** Runs a job. Returns `success` or its error code. */
  async #do(body: object): Promise<string> {
    const { nodedSocket } = this.#lab.paths;
    const answer = await askSocket(nodedSocket, '/v1/jobs', { method: 'POST', body });
    if (answer.status !== 202) return `refused: ${answer.body}`;
    const { id } = z.object({ id: z.number() }).parse(JSON.parse(answer.body));
    const events = await askSocket(nodedSocket, `/v1/jobs/${id}/events`);
    const last = jobEvent.parse(JSON.parse(events.body.trim().split('\n').at(-1) ?? ''));
    if (last.type !== 'end') return 'no end';
    return last.job.error?.code ?? last.job.status;
  }

  /** Starts or stops the instance, with metad alive. A failure is a violation. */
  async #bring(isToRun: boolean): Promise<void> {
    const { running } = await infoOf(this.#lab, NAME);
    if ((running !== null) === isToRun) return;
    const secrets = { osParametersSecret: { [SECRET]: 'x-x-x-x' } };
    const end = await this.#do({
      ...(isToRun ? { opcode: 'INSTANCE_STARTUP', ...secrets } : { opcode: 'INSTANCE_SHUTDOWN', timeoutS: 0 }),
      name: NAME,
    }); // prettier-ignore
    if (end !== 'success') this.#note(`${isToRun ? 'startup' : 'shutdown'} with metad alive: ${end}`); // prettier-ignore
  }

  async #judge(end: string): Promise<readonly string[]> {
    const { paths } = this.#lab;
    const status = await askSocket(paths.metadControlSocket, '/v1/status').then(
      ({ body }) => metadStatus.parse(JSON.parse(body)),
      () => undefined,
    );
    if (status === undefined) return ['metad is not back'];
    const info = await ask(this.#lab, `/v1/instances/${NAME}`, instanceInfo);
    return [
      ...(end === 'INTERNAL' || end === 'no end' ? [`it ended as ${end}`] : []),
      // A running instance explains its own files.
      ...(await findViolations(paths)).filter(
        (text) => info.running === null || !text.startsWith('file run/gnt/vm/'),
      ),
      ...(await this.#judgeChannel(info, status)),
    ];
  }

  async #judgeChannel(info: InstanceInfo, { instances }: MetadStatus): Promise<readonly string[]> {
    const view = instances.find(({ uuid }) => uuid === info.uuid);
    const { networkNamespace, nodedSocket } = this.#lab.paths;
    const sockets = await run('ip', ['netns', 'exec', networkNamespace, 'ss', '-Hltn']);
    const isHeard = sockets.stdout.includes(`${SERVICE_IPV4}%`);
    if (info.running === null) {
      return [
        ...(view === undefined ? [] : ['a view of a machine that is down']),
        ...(isHeard ? ['a listener of a machine that is down'] : []),
      ];
    }
    if (view === undefined) return ['a machine runs without its view'];
    const tree = `/v1/instances/${NAME}/metadata/ganeti/latest`;
    const meta = await askSocket(nodedSocket, `${tree}/meta_data.json`);
    const secret = await askSocket(nodedSocket, `${tree}/os/parameters/${SECRET}`);
    const isToldGone = secret.status === 410 && secret.body.includes(`secret OS parameters ${SECRET}:`); // prettier-ignore
    return [
      ...(isHeard ? [] : ['nobody listens on the channel of a machine that runs']),
      ...(meta.status === 200 ? [] : [`its metadata are ${meta.status}: ${meta.body}`]),
      ...(secret.status === 200 || isToldGone ? [] : [`its secret is ${secret.status}: ${secret.body}`]), // prettier-ignore
    ];
  }
}
