import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { metadStatus } from '#shared/contract/metad-control.ts';
import { run } from '#shared/process/run.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { findRemains, findRemainsOfInstances } from './find-remains.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { MortalImageServer } from './mortal-image-server.ts';
import { createSeededRandom, type SeededRandom } from '../lab/seeded-random.ts';

const faults = [
  'none',
  'kill-qemu',
  'kill-metad',
  'kill-noded',
  'kill-image-server',
  'cancel',
] as const;
type Fault = (typeof faults)[number];

export interface ChaosOptions {
  readonly installs: number;
  readonly seed: number;
  readonly say: (line: string) => void;
  /** Time in milliseconds after which no further installation starts. */
  readonly limitMs?: number;
}

export interface ChaosReport {
  readonly installs: number;
  readonly installed: number;
  /** Number of faults by kind that hit an active target. */
  readonly struck: Readonly<Record<Fault, number>>;
  /** Problems with the number of their installation; empty on success. */
  readonly problems: readonly string[];
}

type State = InstanceInfo['installState'] | undefined;
interface Subject {
  readonly name: string;
  /** Image of a failed installation: the node keeps its partial download for the next attempt. */
  readonly image: string | null;
}
type Problem = (text: string) => void;

/** Arguments for a new instance. */
const NEW = ['-o', 'hello', '-s', '24M', '-O', 'greeting=chaos'];
/** Earliest time of a fault, and time limit for clean-up after an operation. */
const EARLIEST_FAULT_MS = 100;
const SETTLE_MS = 10_000;
/** Share of installed instances that are reinstalled under another fault. */
const SHARE_OF_REINSTALLS = 0.5;
const TOO_LATE = ' too late';
const FIXTURE = join(import.meta.dirname, '../../fixtures/os/hello');

/**
 * Runs installations in a row while a random process is killed at a random moment, and checks for
 * leftovers after each. A failed instance is reinstalled next, and so is half of the others. A
 * failed reinstallation must leave the old or the new system complete.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const lab = await createLab('gnt-chaos');
  try {
    const chaos = await Chaos.prepare(lab, options);
    return await chaos.run();
  } finally {
    await lab.dispose();
  }
}

class Chaos {
  readonly #lab: Lab;
  readonly #options: ChaosOptions;
  readonly #random: SeededRandom;
  readonly #server: MortalImageServer;
  readonly #imagePath: string;
  readonly #problems: string[] = [];
  /** Duration of an undisturbed installation. Faults occur within it. */
  #usualMs = Infinity;
  #installed = 0;
  readonly #struck: Record<Fault, number> = {
    none: 0,
    'kill-qemu': 0,
    'kill-metad': 0,
    'kill-noded': 0,
    'kill-image-server': 0,
    cancel: 0,
  };
  /** The instance to reinstall next; null for a new one. */
  #subject: Subject | null = null;

  private constructor(
    lab: Lab,
    options: ChaosOptions,
    server: MortalImageServer,
    imagePath: string,
  ) {
    this.#lab = lab;
    this.#options = options;
    this.#random = createSeededRandom(options.seed);
    this.#server = server;
    this.#imagePath = imagePath;
  }

  static async prepare(lab: Lab, options: ChaosOptions): Promise<Chaos> {
    const [osDir = ''] = lab.paths.osSearchPath;
    await mkdir(osDir, { recursive: true });
    await cp(FIXTURE, join(osDir, 'hello'), { recursive: true });
    const imagePath = join(lab.paths.root, 'image.raw');
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', FIXTURE, imagePath, '16M']);
    const server = new MortalImageServer(await readFile(imagePath));
    await server.start();
    await lab.startNode();
    return new Chaos(lab, options, server, imagePath);
  }

  async run(): Promise<ChaosReport> {
    const { installs, seed, say, limitMs = Infinity } = this.#options;
    const startedAtMs = Date.now();
    say(`seed ${seed}, ${installs} installs`);
    let plan: Fault[] = ['none']; // the first one measures the duration
    let done = 0;
    for (; done < installs && Date.now() - startedAtMs < limitMs; done += 1) {
      if (plan.length === 0) plan = this.#random.shuffle(faults);
      const fault = plan.shift() ?? 'none';
      const text = await this.#install(done, fault);
      say(`${done + 1}/${installs} ${text}`);
    }
    if (this.#subject !== null) await this.#end(this.#subject.name, (text) => this.#note(text));
    await this.#server.kill();
    const status = await this.#lab.stopNode();
    if (status !== 0) this.#note(`at the end: gnt-noded ended with status ${status}`);
    for (const leftover of await this.#lab.findLeftovers()) this.#note(`at the end: ${leftover}`);
    return {
      installs: done,
      installed: this.#installed,
      struck: this.#struck,
      problems: this.#problems,
    };
  }

  #note(problem: string): void {
    this.#problems.push(problem);
    this.#options.say(`PROBLEM ${problem}`);
  }

  async #install(index: number, fault: Fault): Promise<string> {
    const name = this.#subject?.name ?? `chaos${index}.example.com`;
    const verb = this.#subject === null ? 'add' : 'reinstall';
    const image = this.#chooseImage(index, fault);
    const momentMs = Math.round(
      EARLIEST_FAULT_MS +
        this.#random.next() * (fault === 'kill-image-server' ? 3000 : this.#usualMs),
    );
    const startedAtMs = Date.now();
    const installing = this.#lab.run('gnt-instance', [
      ...(verb === 'add' ? ['add', ...NEW] : ['reinstall', '--force']),
      ...['--no-start', '--os-image', image, name],
    ]);
    const hasEnded = installing.then(() => true);
    const at =
      fault === 'none' ? '' : await this.#strike(fault, name, momentMs, startedAtMs, hasEnded);
    if (at !== TOO_LATE) this.#struck[fault] += 1;
    const result = await installing;
    if (result.status === 0) this.#usualMs = Math.min(this.#usualMs, Date.now() - startedAtMs);
    await this.#bringBack();

    const problem = (text: string): void =>
      this.#note(`install ${index + 1} (${verb}, ${fault}${at}): ${text}`);
    const code = codeOf(result);
    if (fault === 'none' ? result.status !== 0 : code === 'INTERNAL')
      problem(`status ${result.status} with ${result.stderr}`);
    const state = await this.#judge(name, problem);
    if (result.status === 0 && state !== 'installed') problem(`told as done, and is ${state}`);
    await this.#chooseNext({ name, image: result.status === 0 ? null : image }, state, problem);
    const took = ((Date.now() - startedAtMs) / 1000).toFixed(1);
    return `${verb}, ${fault}${at}: ${state ?? 'nothing made'} ${code}, ${took} s`;
  }

  #chooseImage(index: number, fault: Fault): string {
    const isRemote = fault === 'kill-image-server' || this.#random.next() < 0.5;
    const former = this.#subject?.image ?? this.#imagePath;
    if (former !== this.#imagePath) return former;
    return isRemote ? this.#server.url(`${index}.raw`) : this.#imagePath;
  }

  async #chooseNext(subject: Subject, state: State, problem: Problem): Promise<void> {
    // The node keeps a partial download for the next request.
    const isCut = subject.image !== null && subject.image !== this.#imagePath;
    const isNext =
      state === 'failed' ||
      (state === 'installed' && (isCut || this.#random.next() < SHARE_OF_REINSTALLS));
    if (state !== undefined && !isNext) await this.#remove(subject.name, problem);
    this.#subject = isNext ? subject : null;
  }

  /** Reinstalls and removes the last instance without faults. */
  async #end(name: string, problem: Problem): Promise<void> {
    await this.#reinstall(name, problem);
    await this.#remove(name, problem);
  }

  async #reinstall(name: string, problem: Problem): Promise<void> {
    const again = await this.#lab.run('gnt-instance', ['reinstall', '--force', '--no-start', name]);
    if (again.status !== 0) problem(`reinstall: ${again.stderr}`);
    if ((await this.#judge(name, problem)) !== 'installed') problem('it cannot be reinstalled');
  }

  /** Waits for the moment and strikes. @returns the time of the strike in words */
  async #strike(
    fault: Fault,
    name: string,
    momentMs: number,
    startedAtMs: number,
    hasEnded: Promise<boolean>,
  ): Promise<string> {
    const wait = async (ms: number): Promise<boolean> =>
      Promise.race([hasEnded, sleep(ms, false, { ref: false })]);
    if (await wait(momentMs)) return TOO_LATE;
    while (!(await this.#act(fault, name))) if (await wait(50)) return TOO_LATE;
    return ` after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s`;
  }

  /** @returns false while the target does not exist */
  async #act(fault: Fault, name: string): Promise<boolean> {
    switch (fault) {
      case 'none':
        return true;
      case 'kill-noded':
        await this.#restartNoded();
        return true;
      case 'kill-image-server':
        await this.#server.kill();
        return true;
      case 'kill-qemu':
      case 'kill-metad': {
        const isTarget = (line: string): boolean =>
          fault === 'kill-qemu' ? /qemu-system/.test(line) : /metad\/main\./.test(line);
        const target = (await this.#lab.processes()).find(({ command }) => isTarget(command));
        if (target === undefined) return false;
        process.kill(target.pid, 'SIGKILL');
        return true;
      }
      case 'cancel': {
        const job = (await this.#jobs()).find(
          ({ instance, endedAtMs }) => instance === name && endedAtMs === null,
        );
        if (job === undefined) return false;
        const { nodedSocket } = this.#lab.paths;
        const answer = await askSocket(nodedSocket, `/v1/jobs/${job.id}`, { method: 'DELETE' });
        return answer.status === 202;
      }
    }
  }

  /** Restarts noded. The client waits for the new daemon, which reports the job's end. */
  async #restartNoded(): Promise<void> {
    await killNode(this.#lab);
    await this.#lab.startNode();
  }

  /** Restarts all killed processes. */
  async #bringBack(): Promise<void> {
    await this.#server.start();
    const node = this.#lab.node();
    if (node.exitCode !== null || node.signalCode !== null) {
      this.#note(`gnt-noded ended by itself with ${node.exitCode ?? node.signalCode}`);
      await this.#lab.startNode();
    }
    const deadlineMs = Date.now() + SETTLE_MS;
    while (Date.now() < deadlineMs) {
      const status = await this.#metadStatus();
      if (status !== undefined) return;
      await sleep(100);
    }
    this.#note('metad did not come back');
  }

  async #metadStatus(): Promise<z.infer<typeof metadStatus> | undefined> {
    try {
      const { body } = await askSocket(this.#lab.paths.metadControlSocket, '/v1/status');
      return metadStatus.parse(JSON.parse(body));
    } catch {
      return undefined;
    }
  }

  async #jobs(): Promise<readonly JobRecord[]> {
    const { body } = await askSocket(this.#lab.paths.nodedSocket, '/v1/jobs');
    return z.array(jobRecord).parse(JSON.parse(body));
  }

  async #find(name: string): Promise<InstanceInfo | undefined> {
    const { status, body } = await askSocket(this.#lab.paths.nodedSocket, `/v1/instances/${name}`);
    return status === 404 ? undefined : instanceInfo.parse(JSON.parse(body));
  }

  /**
   * Checks that the job left nothing, and that the instance's state matches its disk.
   * @returns the state, undefined without an instance
   */
  async #judge(name: string, problem: Problem): Promise<State> {
    const running = (await this.#jobs()).filter(({ endedAtMs }) => endedAtMs === null);
    if (running.length > 0) problem(`job ${running[0]?.id} still ${running[0]?.status}`);
    for (const remains of await this.#settled()) problem(remains);
    const shown = await this.#find(name);
    if (shown === undefined) return undefined;
    if (shown.running !== null) problem(`it runs, and was ${shown.installState}`);
    if (shown.installState === 'installed') {
      this.#installed += 1;
      const text = await run('debugfs', [
        '-R', 'cat /etc/motd', join(this.#lab.paths.disksDir, shown.uuid, 'disk0.raw'),
      ]); // prettier-ignore
      if (!text.stdout.startsWith(`chaos, from ${name}`)) problem('installed, but its disk is not');
    } else {
      if (shown.installState !== 'failed') problem(`its state is ${shown.installState}`);
      if (shown.install?.error == null) problem('it does not say why it failed');
      const start = await askSocket(this.#lab.paths.nodedSocket, '/v1/jobs?dry-run=1', {
        method: 'POST',
        body: { opcode: 'INSTANCE_STARTUP', name },
      });
      if (start.status === 200) problem('a half-installed instance could be started');
    }
    return shown.installState;
  }

  async #remove(name: string, problem: Problem): Promise<void> {
    const removed = await this.#lab.run('gnt-instance', ['remove', '--force', name]);
    if (removed.status !== 0) problem(`remove: ${removed.stderr}`);
    for (const remains of await findRemainsOfInstances(this.#lab)) problem(remains);
  }

  /** Returns the leftovers after the time for clean-up. */
  async #settled(): Promise<readonly string[]> {
    const deadlineMs = Date.now() + SETTLE_MS;
    for (;;) {
      const remains = [...(await findRemains(this.#lab))];
      const views = (await this.#metadStatus())?.instances ?? [];
      remains.push(...views.map(({ uuid }) => `view of ${uuid}`));
      if (remains.length === 0 || Date.now() > deadlineMs) return remains;
      await sleep(200);
    }
  }
}

/** Returns the error code of a command: INTERNAL without one in the output, empty for success. */
function codeOf({ status, stderr }: ProgramResult): string {
  return status === 0 ? '' : (/^error\[(\w+)\]/m.exec(stderr)?.[1] ?? 'INTERNAL');
}
