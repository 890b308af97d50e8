import { randomBytes } from 'node:crypto';
import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobRecord } from '#shared/contract/job.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { findSecret } from '../../../scripts/demo/find-secret.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { openClusterRecords } from '../../bench/support/cluster-records.ts';
import { statusOf, succeed } from '../../e2e/support/ask-nodes.ts';
import { addHostOs } from '../../e2e/support/host-os.ts';
import { createSeededRandom, type SeededRandom } from '../../lab/seeded-random.ts';
import { askFor, createOf, drawJobs, NETWORK, OS, type Asked } from './cluster-jobs.ts';
import { judgeCluster, readInstances, readJobs, SCRIPT_LOG } from './judge-cluster.ts';
import { StoreServers } from './store-servers.ts';
import { FAULTS, strike, type Place } from './strike.ts';
import { Wire } from './wire.ts';
import { makeTinyLinux, type TinyLinux } from '../../lab/tiny-linux.ts';

export interface ClusterChaos {
  readonly seed: number;
  /** Each round has `JOBS` jobs, half of them at once. */
  readonly rounds: number;
  readonly faults: number;
  /** Number of running guests, one on a node. */
  readonly guests: number;
  readonly say: (line: string) => void;
}

export interface ClusterReport {
  readonly asked: readonly Asked[];
  readonly succeeded: number;
  readonly problems: readonly string[];
}

const HOSTS = 3;
const CAPTURE = 'capture';
/** Prefix of the files with each store's commands. */
const HEARD = 'heard-';
const JOBS = 100;
const STOPPED = 12;
const ENDED_MS = 90_000;
const ASKED_WITHIN_MS = 30_000;
/** Delay before reconnecting to a stopped server. */
const AGAIN_MS = 20;
/** Init of an idle guest. */
const IDLE = '#!/bin/busybox sh\nexec /bin/busybox sleep 1000000\n';

/**
 * Runs three hosts on one network. Each has a Redis, a Sentinel, a node and guests. They get a
 * hundred jobs, half of them at once, while hosts and links fail.
 */
export async function runClusterChaos(options: ClusterChaos): Promise<ClusterReport> {
  const folder = await mkdtemp('/tmp/gnt-cluster-');
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  const wire = undo.use(await Wire.start(HOSTS, folder, join(folder, CAPTURE)));
  const stores = undo.use(await StoreServers.start(wire.hosts, folder));
  const places: Place[] = [];
  for (const [index, host] of wire.hosts.entries()) {
    const lab = await createLab(`gnt-cc${index + 1}`, () => host.programs);
    undo.defer(() => lab.dispose());
    places.push({ name: `node${index + 1}.example.com`, lab, host });
  }
  // `await` before the return: leaving this function stops the hosts.
  return await new ClusterRun(options, places, stores, folder).run();
}

/** From this number of jobs of a kind on, at least one must succeed despite all faults. */
const JUDGED_KIND = 15;

class ClusterRun {
  readonly #options: ClusterChaos;
  readonly #random: SeededRandom;
  readonly #places: readonly Place[];
  readonly #stores: StoreServers;
  /** Files of the stores, the capture and the logged commands. */
  readonly #folder: string;
  readonly #secret = randomBytes(20).toString('hex');
  readonly #asked: Asked[] = [];
  readonly #problems: string[] = [];
  #stopped: string[] = [];
  #running: string[] = [];

  constructor(
    options: ClusterChaos,
    places: readonly Place[],
    stores: StoreServers,
    folder: string,
  ) {
    this.#options = options;
    this.#random = createSeededRandom(options.seed);
    this.#places = places;
    this.#stores = stores;
    this.#folder = folder;
  }

  async run(): Promise<ClusterReport> {
    const heard = this.#stores.servers.map(
      ({ socket }, index) => new Listener(socket, join(this.#folder, `${HEARD}${index}`)),
    );
    try {
      await this.#found();
      await this.#populate();
      for (let round = 0; round < this.#options.rounds; round += 1) await this.#runRound(round);
      await this.#judgeSecrecy(heard);
      const jobs = await readJobs(this.#first);
      const succeeded = jobs.filter(({ status }) => status === 'success').length;
      this.#judgeKinds(jobs);
      return { asked: this.#asked, succeeded, problems: this.#problems };
    } finally {
      for (const listener of heard) await listener.end();
    }
  }

  get #first(): Lab {
    const [first] = this.#places;
    if (first === undefined) throw new Error('there are no nodes');
    return first.lab;
  }

  /** Creates the cluster, its nodes, OS definition and network. */
  async #found(): Promise<void> {
    const first = this.#first;
    await succeed(first, 'gnt-cluster', 'init', '--store', this.#stores.url, 'gnt.example.com');
    const { clusterKeyFile } = first.paths;
    const join = ['init', '--store', this.#stores.url, '--cluster-key', clusterKeyFile];
    for (const { lab } of this.#places)
      if (lab !== first) await succeed(lab, 'gnt-cluster', ...join);
    const built = await first.run('gnt-appliance', ['build']);
    if (built.status !== 0) throw new Error(built.stderr);
    const create = `test -n "$OSP_KEY" && echo "$INSTANCE_NAME" >>${SCRIPT_LOG}`;
    for (const { lab } of this.#places) await addHostOs(lab, OS, { create });
    await Promise.all(this.#places.map(({ lab, name }) => lab.startNode('--node', name)));
    await this.#must({ opcode: 'OS_SET_PARAMS', name: OS, trusted: true });
    await this.#must({ opcode: 'NETWORK_ADD', name: NETWORK, network: '10.99.0.0/16' });
    const connection = { mode: 'bridged', link: 'br0' };
    await this.#must({ opcode: 'NETWORK_CONNECT', name: NETWORK, connection });
  }

  async #must(opcode: object, lab = this.#first): Promise<void> {
    const status = await statusOf(lab, opcode);
    if (status !== 'success') throw new Error(`${JSON.stringify(opcode)}: ${status}`);
  }

  /** Creates stopped instances, and one guest on each node. */
  async #populate(): Promise<void> {
    const guest = await makeTinyLinux(this.#first, 'idle.img', IDLE);
    const making: Promise<void>[] = [];
    for (let index = 0; index < STOPPED; index += 1) {
      const name = `stopped${index}.example.com`;
      const { name: node, lab } = this.#random.pick(this.#places);
      making.push(this.#must(createOf(name, node, this.#secret), lab));
      this.#stopped.push(name);
    }
    for (const [index, place] of this.#places.slice(0, this.#options.guests).entries()) {
      const name = `guest${index}.example.com`;
      making.push(this.#startGuest(name, place, guest));
      this.#running.push(name);
    }
    await Promise.all(making);
  }

  async #startGuest(name: string, { name: node, lab }: Place, guest: TinyLinux): Promise<void> {
    const made = {
      ...{ opcode: 'INSTANCE_CREATE', name, node, install: false, start: false, osType: OS },
      ...{ nics: [{ networkName: NETWORK, ip: 'pool' }], communication: true },
      ...{ disks: [{ sizeBytes: 4 * MIB }], beparams: { memoryMiB: 96, vcpus: 1 } },
      hvparams: {
        accel: 'tcg',
        kernel_path: guest.kernel,
        initrd_path: guest.initrd,
        kernel_args: 'console=ttyS0 quiet',
      },
    };
    await this.#must(made, lab);
    const osParametersSecret = { key: this.#secret };
    await this.#must({ opcode: 'INSTANCE_STARTUP', name, osParametersSecret }, lab);
  }

  async #runRound(round: number): Promise<void> {
    const { say, faults } = this.#options;
    const population = {
      ...{ stopped: this.#stopped, running: this.#running },
      nodes: this.#places.map(({ name }) => name),
    };
    const secret = this.#secret;
    const jobs = drawJobs(this.#random, JOBS, population, { round, secret });
    // Half of the jobs start at once, the others during the faults: without a store, a job is
    // refused within seconds.
    const asking = jobs.map(async (opcode, index) => {
      const { lab } = this.#random.pick(this.#places);
      if (index % 2 === 1) await sleep(this.#random.below(ASKED_WITHIN_MS));
      return askFor(lab, opcode);
    });
    for (let count = 0; count < faults; count += 1) {
      await sleep(this.#random.below(1500));
      const fault = this.#random.pick(FAULTS);
      say(await strike(fault, { places: this.#places, stores: this.#stores }, this.#random));
      await this.#stores.settled();
    }
    this.#asked.push(...(await Promise.all(asking)));
    await this.#untilEnded();
    await this.#judge(round);
    const kinds = this.#asked.map(({ answer }) => answer.kind === 'refused' ? answer.code : answer.kind); // prettier-ignore
    say(Object.entries(Object.groupBy(kinds, (kind) => kind)).map(([kind, all]) => `${kind} ${all?.length}`).join(', ')); // prettier-ignore
    say(`the longest asking took ${Math.max(...this.#asked.map(({ tookMs }) => tookMs))} ms`);
  }

  async #untilEnded(): Promise<void> {
    const deadlineMs = Date.now() + ENDED_MS;
    while (Date.now() < deadlineMs) {
      const jobs = await readJobs(this.#first).catch(() => undefined);
      if (jobs?.every(({ endedAtMs }) => endedAtMs !== null)) return;
      await sleep(500);
    }
  }

  /** Repeats the check until nothing is wrong or the time is over. */
  async #judge(round: number): Promise<void> {
    const master = await this.#stores.master();
    const url = `unix:${master?.socket ?? ''}`;
    const { store } = await openClusterRecords(url, this.#first.paths.clusterKeyFile);
    try {
      const deadlineMs = Date.now() + ENDED_MS;
      for (;;) {
        // A recovering node refuses to answer.
        const found = await judgeCluster(this.#places, store, this.#asked).catch(
          (error: unknown) => [messageOf(error)],
        );
        if (found.length > 0 && Date.now() < deadlineMs) {
          await sleep(1000);
          continue;
        }
        this.#problems.push(...found.map((problem) => `round ${round}: ${problem}`));
        const names = (await readInstances(store)).map(({ name }) => name);
        this.#stopped = names.filter((name) => !this.#running.includes(name));
        return;
      }
    } finally {
      await store.close();
    }
  }

  /** Reports kinds of jobs that never succeed, because the run then shows nothing about them. */
  #judgeKinds(jobs: readonly JobRecord[]): void {
    const succeeded = new Set(jobs.flatMap(({ id, status }) => (status === 'success' ? [id] : [])));
    const kinds = Object.groupBy(this.#asked, ({ opcode }) => opcode.opcode);
    for (const [kind, all = []] of Object.entries(kinds)) {
      const accepted = all.flatMap(({ answer }) => (answer.kind === 'accepted' ? [answer.id] : []));
      const done = accepted.filter((id) => succeeded.has(id)).length;
      this.#options.say(`${kind}: ${all.length} asked, ${accepted.length} accepted, ${done} done`);
      if (all.length >= JUDGED_KIND && done === 0)
        this.#problems.push(`of ${all.length} ${kind} none succeeded`);
    }
  }

  /**
   * Checks that the secret is in no file of a store or node, in no command to a store, and not in
   * the captured traffic.
   */
  async #judgeSecrecy(heard: readonly Listener[]): Promise<void> {
    for (const { socket, ask } of this.#stores.servers.map((server) => ({
      socket: server.socket,
      ask: server.ask.bind(server),
    }))) {
      // prettier-ignore
      await ask(socket, 'SAVE');
      await ask(socket, 'BGREWRITEAOF');
    }
    await sleep(1000);
    for (const listener of heard) await listener.end();
    for (const folder of [this.#folder, ...this.#places.map(({ lab }) => lab.paths.root)])
      for (const path of await findSecret(this.#secret, folder, () => false))
        this.#problems.push(`the secret is in ${path}`);
    // A known word shows that the files have content.
    const known = await findSecret('{gnt}', this.#folder, () => false);
    for (const name of [CAPTURE, ...heard.map((_, index) => `${HEARD}${index}`)]) {
      const path = join(this.#folder, name);
      if (!known.includes(path)) this.#problems.push(`nothing is in ${name}`);
      this.#options.say(`${name}: ${Math.round((await stat(path)).size / MIB)} MiB`);
    }
  }
}

/** Logs all commands to a Redis, across its restarts. */
class Listener {
  readonly #socketPath: string;
  readonly #file: WriteStream;
  #socket: Socket | undefined;
  #isOver = false;

  constructor(socketPath: string, path: string) {
    this.#socketPath = socketPath;
    this.#file = createWriteStream(path);
    this.#listen();
  }

  #listen(): void {
    if (this.#isOver) return;
    const socket = connect(this.#socketPath, () => socket.write('MONITOR\r\n'));
    this.#socket = socket;
    socket.pipe(this.#file, { end: false });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      socket.unpipe(this.#file);
      setTimeout(() => this.#listen(), AGAIN_MS);
    });
  }

  async end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket?.destroy();
    this.#file.end();
    await finished(this.#file);
  }
}
