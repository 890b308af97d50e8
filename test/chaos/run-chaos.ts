import { once } from 'node:events';
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
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
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
  /** No further install begins after so many milliseconds. */
  readonly limitMs?: number;
}

export interface ChaosReport {
  readonly installs: number;
  readonly installed: number;
  /** What went wrong, by the number of the install; empty is what is wanted. */
  readonly problems: readonly string[];
}

/** The first moment of a fault, and the longest time an operation's remains may need to go. */
const EARLIEST_FAULT_MS = 100;
const SETTLE_MS = 10_000;
const FIXTURE = join(import.meta.dirname, '../../fixtures/os/hello');

/**
 * Installs in a row while something is killed at a random moment; after each, nothing may be left
 * of it, and the same instance can be installed or removed.
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
  /** How long an install takes that nobody disturbs; faults come within it. */
  #usualMs = Infinity;
  #installed = 0;

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
    let plan: Fault[] = ['none']; // the first one is for the clock
    let done = 0;
    for (; done < installs && Date.now() - startedAtMs < limitMs; done += 1) {
      if (plan.length === 0) plan = this.#random.shuffle(faults);
      const fault = plan.shift() ?? 'none';
      const text = await this.#install(done, fault);
      say(`${done + 1}/${installs} ${text}`);
    }
    await this.#server.kill();
    const status = await this.#lab.stopNode();
    if (status !== 0) this.#note(`at the end: gnt-noded ended with status ${status}`);
    for (const leftover of await this.#lab.findLeftovers()) this.#note(`at the end: ${leftover}`);
    return { installs: done, installed: this.#installed, problems: this.#problems };
  }

  #note(problem: string): void {
    this.#problems.push(problem);
    this.#options.say(`PROBLEM ${problem}`);
  }

  async #install(index: number, fault: Fault): Promise<string> {
    const name = `chaos${index}.example.com`;
    const isRemote = fault === 'kill-image-server' || this.#random.next() < 0.5;
    const image = isRemote ? this.#server.url(`${index}.raw`) : this.#imagePath;
    const momentMs = Math.round(
      EARLIEST_FAULT_MS +
        this.#random.next() * (fault === 'kill-image-server' ? 3000 : this.#usualMs),
    );
    const startedAtMs = Date.now();
    const adding = this.#lab.run('gnt-instance', [
      'add', '--no-start', '--os-image', image, '-o', 'hello', '-s', '24M', '-O', 'greeting=chaos', name,
    ]); // prettier-ignore
    const hasEnded = adding.then(() => true);
    const at =
      fault === 'none' ? '' : await this.#strike(fault, name, momentMs, startedAtMs, hasEnded);
    const result = await adding;
    if (result.status === 0) this.#usualMs = Math.min(this.#usualMs, Date.now() - startedAtMs);
    await this.#bringBack();

    const problem = (text: string): void =>
      this.#note(`install ${index + 1} (${fault}${at}): ${text}`);
    const code = /^error\[(\w+)\]/m.exec(result.stderr)?.[1] ?? '';
    const isUnexplained = result.status !== 0 && ['', 'INTERNAL'].includes(code);
    if (isUnexplained || (fault === 'none' && result.status !== 0))
      problem(`status ${result.status} with ${result.stderr}`);
    const state = await this.#cleanUp(name, problem);
    return `${fault}${at}: ${state ?? 'nothing made'}${code && ` ${code}`}`;
  }

  async #cleanUp(
    name: string,
    problem: (text: string) => void,
  ): Promise<InstanceInfo['installState'] | undefined> {
    const state = await this.#judge(name, problem);
    if (state === 'failed') await this.#reinstall(name, problem);
    if (state !== undefined) await this.#remove(name, problem);
    return state;
  }

  /** Undisturbed, it must succeed. */
  async #reinstall(name: string, problem: (text: string) => void): Promise<void> {
    const again = await this.#lab.run('gnt-instance', ['reinstall', '--force', '--no-start', name]);
    if (again.status !== 0) problem(`reinstall: ${again.stderr}`);
    if ((await this.#judge(name, problem)) !== 'installed') problem('it cannot be reinstalled');
  }

  /** Waits for the moment and does it. @returns in words, when and where it struck */
  async #strike(
    fault: Fault,
    name: string,
    momentMs: number,
    startedAtMs: number,
    hasEnded: Promise<boolean>,
  ): Promise<string> {
    const wait = async (ms: number): Promise<boolean> =>
      Promise.race([hasEnded, sleep(ms, false, { ref: false })]);
    if (await wait(momentMs)) return ' too late';
    while (!(await this.#act(fault, name))) if (await wait(50)) return ' too late';
    return ` after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s`;
  }

  /** @returns false when there is nothing yet that could be hurt */
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

  /** The client waits for a daemon that comes back, and is told what became of its job. */
  async #restartNoded(): Promise<void> {
    const node = this.#lab.node();
    const ended = once(node, 'exit');
    node.kill('SIGKILL');
    await ended;
    await this.#lab.startNode();
  }

  /** Whatever was killed runs again. */
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
   * Nothing of the job is left, and what it made says truly what it is.
   * @returns its state, undefined when there is none
   */
  async #judge(
    name: string,
    problem: (text: string) => void,
  ): Promise<InstanceInfo['installState'] | undefined> {
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

  async #remove(name: string, problem: (text: string) => void): Promise<void> {
    const removed = await this.#lab.run('gnt-instance', ['remove', '--force', name]);
    if (removed.status !== 0) problem(`remove: ${removed.stderr}`);
    for (const remains of await findRemainsOfInstances(this.#lab)) problem(remains);
  }

  /** What is left when everything had time to go. */
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
