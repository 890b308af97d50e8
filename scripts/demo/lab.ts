import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import { createNodeClient } from '../../cluster-cli/client/node-client.ts';

const projectDir = join(import.meta.dirname, '../..');
const READY_TIMEOUT_MS = 60_000;
/** There is no event for a socket that begins to answer. */
const READY_POLL_MS = 50;
const STOP_TIMEOUT_MS = 60_000;

export type ProgramName =
  | 'gnt-instance'
  | 'gnt-os'
  | 'gnt-cluster'
  | 'gnt-node'
  | 'gnt-job'
  | 'gnt-backup'
  | 'gnt-image'
  | 'gnt-profile'
  | 'gnt-network'
  | 'gnt-bootenv'
  | 'gnt-group'
  | 'gnt-debug'
  | 'gnt-appliance'
  | 'gnt-noded';

export interface ProgramResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly input?: string;
  /** Shows the program's output immediately, on the reader's own terminal. */
  readonly isShown?: boolean;
  readonly timeoutMs?: number;
}

export interface LabProcess {
  readonly pid: number;
  readonly command: string;
}

/**
 * One node under its own root, run by the programs of this checkout as an operator would.
 * @param programs returns the folder of the programs, called at each start
 */
export async function createLab(
  name: string,
  programs: () => string = () => join(projectDir, 'node_modules/.bin'),
) {
  const root = await mkdtemp(`/tmp/${name}-`);
  const paths = createRootPaths(root);
  const environment = { ...process.env, GNT_ROOT: root };
  let node: ChildProcess | undefined;

  const launch = (
    program: ProgramName,
    args: readonly string[],
    stdio: 'pipe' | 'inherit',
  ): ChildProcess => spawn(join(programs(), program), args, { env: environment, stdio });

  const run = async (
    program: ProgramName,
    args: readonly string[],
    options: ProgramOptions = {},
  ): Promise<ProgramResult> => {
    const child = launch(program, args, options.isShown ? 'inherit' : 'pipe');
    const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 900_000);
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin?.on('error', () => undefined); // a program that refuses early does not read its input
    child.stdin?.end(options.input ?? '');
    // The event's arguments, as documented.
    const [status] = (await once(child, 'close')) as [number | null];
    clearTimeout(timer);
    return { status, stdout, stderr };
  };

  /** Sends SIGTERM and waits. @returns the daemon's exit status */
  const stopNode = async (): Promise<number | null> => {
    const running = node;
    node = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null)
      return running?.exitCode ?? null;
    const ended = once(running, 'exit');
    running.kill('SIGTERM');
    const timer = setTimeout(() => running.kill('SIGKILL'), STOP_TIMEOUT_MS);
    // The event's arguments, as documented.
    const [status] = (await ended) as [number | null];
    clearTimeout(timer);
    return status;
  };

  const client = createNodeClient({ socketPath: paths.nodedSocket, startCommand: 'gnt-noded' });
  /**
   * @returns the reason why the node is not ready. Does not run the doctor, which tries KVM each
   * time: that takes seconds where KVM hangs.
   */
  const whyNotReady = async (): Promise<string | null> => {
    try {
      return (await client.ask('GET /v1/node')).metad.pid === null ? 'metad is not running' : null;
    } catch (error) {
      return String(error);
    }
  };

  return {
    paths,
    run,
    stopNode,
    /** The daemon's process, for tests that disturb it. */
    node: (): ChildProcess => {
      if (node === undefined) throw new Error('the node is not running');
      return node;
    },
    /** Starts gnt-noded with further options, and waits until it answers and gnt-metad runs. */
    startNode: async (...options: readonly string[]): Promise<void> => {
      node = spawn(
        join(programs(), 'gnt-noded'),
        ['--node', 'node1.example.com', '--log-level', 'debug', ...options],
        {
          env: environment,
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      );
      node.stderr?.pipe(createWriteStream(join(root, 'noded.log'), { flags: 'a' }));
      const deadline = Date.now() + READY_TIMEOUT_MS;
      for (let reason = await whyNotReady(); reason !== null; reason = await whyNotReady()) {
        if (node.exitCode !== null || node.signalCode !== null || Date.now() > deadline) {
          const log = await readFile(join(root, 'noded.log'), 'utf8').catch(() => '');
          throw new Error(`gnt-noded is not ready: ${reason}\n${log.slice(-2000)}`);
        }
        await sleep(READY_POLL_MS);
      }
    },
    /** Lists processes of this node's root, their command lines with spaces. */
    processes: (): Promise<readonly LabProcess[]> => describeProcesses(root),
    /** Lists processes, namespaces and mounts below the root, which a clean node must not leave. */
    findLeftovers: (): Promise<readonly string[]> => findLeftovers(paths),
    dispose: async (): Promise<void> => {
      await stopNode();
      for (const pid of await processesOf(root)) killQuietly(pid);
      await removeNamespace(paths.networkNamespace);
      await removeTable(paths.machineWallTable);
      await rm(root, { recursive: true, force: true });
    },
  };
}

export type Lab = Awaited<ReturnType<typeof createLab>>;

/**
 * Lists processes that name the root in their command line, hold a file below it or have mounted
 * it: daemons, QEMU, builders.
 */
async function processesOf(root: string): Promise<readonly number[]> {
  const pids: number[] = [];
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const isOurs =
      commandLine.includes(root) || (await holdsFileBelow(pid, root)) || (await mounts(pid, root));
    if (isOurs) pids.push(pid);
  }
  return pids;
}

async function holdsFileBelow(pid: number, root: string): Promise<boolean> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
  const targets = await Promise.all(
    descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  );
  return targets.some((target) => target.startsWith(`${root}/`));
}

/**
 * Whether a process has a mount below the root. gnt-metad sees a few folders under other names, so
 * that the source of a bind mount counts (field 4, proc(5)): mount points are also in the table of
 * unrelated processes.
 */
async function mounts(pid: number, root: string): Promise<boolean> {
  const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
  return table
    .split('\n')
    .some((line) => (line.split(' ')[3] ?? '').includes(`/${basename(root)}/`));
}

async function describeProcesses(root: string): Promise<readonly LabProcess[]> {
  const processes: LabProcess[] = [];
  for (const pid of await processesOf(root)) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    processes.push({ pid, command: commandLine.replaceAll('\0', ' ') });
  }
  return processes;
}

async function findLeftovers(paths: RootPaths): Promise<readonly string[]> {
  const found = (await describeProcesses(paths.root)).map(
    ({ pid, command }) => `process ${pid}: ${command.slice(0, 120)}`,
  );
  const namespaces = await readdir('/run/netns').catch((): string[] => []);
  if (namespaces.includes(paths.networkNamespace))
    found.push(`namespace ${paths.networkNamespace}`);
  if ((await nftTables()).includes(paths.machineWallTable))
    found.push(`nft table ${paths.machineWallTable}`);
  const table = await readFile('/proc/self/mounts', 'utf8');
  for (const line of table.split('\n')) if (line.includes(paths.root)) found.push(`mount ${line}`);
  for (const loop of await readdir('/sys/block').catch((): string[] => [])) {
    const backing = await readFile(`/sys/block/${loop}/loop/backing_file`, 'utf8').catch(() => '');
    if (backing.includes(paths.root)) found.push(`loop device ${loop}`);
  }
  return found;
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended by itself.
  }
}

async function nftTables(): Promise<string> {
  const child = spawn('nft', ['list', 'tables'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let tables = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (tables += text));
  await once(child, 'close');
  return tables;
}

async function removeTable(name: string): Promise<void> {
  if (!(await nftTables()).includes(name)) return;
  await once(spawn('nft', ['delete', 'table', 'inet', name], { stdio: 'ignore' }), 'exit');
}

async function removeNamespace(name: string): Promise<void> {
  const namespaces = await readdir('/run/netns').catch((): string[] => []);
  if (!namespaces.includes(name)) return;
  await once(spawn('ip', ['netns', 'del', name], { stdio: 'ignore' }), 'exit');
}
