import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '#shared/abort/until.ts';
import type { NetworkGuest } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { launchProgram } from '#shared/process/launch.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import { bound, readFileTail } from '../../host/bounded-log.ts';
import {
  type ProcessIdentity,
  endProcess,
  isAlive,
  parseProcessStat,
  readProcessIdentity,
  signalProcess,
} from '../../host/process-identity.ts';
import { readProcFile, userOf } from '../../host/process-facts.ts';
import {
  type DnsmasqFiles,
  dropForeignLeases,
  formatHosts,
  formatReservations,
  planDnsmasq,
} from './plan-dnsmasq.ts';
import type { NatNetwork } from './plan-nat-rules.ts';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const BINARIES = ['/usr/sbin/dnsmasq', '/usr/local/sbin/dnsmasq'];
/** dnsmasq starts within a tenth of a second, except on a swapping host. */
const START_TIMEOUT_MS = 30_000;
/** A stopped or hung dnsmasq reacts only to SIGKILL. */
const STOP_TIMEOUT_MS = 3000;
const KILL_TIMEOUT_MS = 10_000;
const LOOK_MS = 20;
const MAX_LOG_BYTES = MIB;
const TAIL_BYTES = 4096;
/** More than 65,534 leases need. The file belongs to another user, so reading it needs a limit. */
const MAX_LEASES_BYTES = 16 * MIB;
const STARTED = /^dnsmasq: started, version |: started, version /m;
/** @throws AppError HOST_PREREQUISITE */
export function requireDnsmasq(): void {
  for (const path of BINARIES) {
    try {
      accessSync(path, constants.X_OK);
      return;
    } catch {
      // Try the next path.
    }
  }
  throw new AppError('HOST_PREREQUISITE', 'dnsmasq is not installed', {
    hint: 'Install it: apt-get install dnsmasq-base',
  });
}

/**
 * Runs the DHCP and DNS server of one network, with its own folder and its own user. The process
 * outlives this one, which finds it again by its identity file.
 * @param dir its last part is the bridge's name
 * @param uid of a user that runs nothing else
 */
export function createDnsmasq(dir: string, uid: number) {
  const bridge = basename(dir);
  const files: DnsmasqFiles = {
    identity: join(dir, 'stat'),
    leases: join(dir, 'leases'),
    reservations: join(dir, 'reservations'),
    hosts: join(dir, 'hosts'),
  };
  const log = join(dir, 'log');
  const readNoted = (): ProcessIdentity | undefined =>
    existsSync(files.identity)
      ? parseProcessStat(readFileSync(files.identity, 'utf8').trim())
      : undefined;
  const findAlive = (): ProcessIdentity | undefined => {
    const identity = readNoted();
    return identity !== undefined && isAlive(identity) ? identity : undefined;
  };
  const prepare = async (): Promise<void> => {
    // A dnsmasq without files would keep reading and writing the deleted ones.
    if (readNoted() === undefined) await endAll(listServing(bridge, uid));
    mkdirSync(dir, { recursive: true, mode: 0o750 });
    chownSync(dir, 0, uid);
    if (!existsSync(files.leases)) writeFileSync(files.leases, '', { mode: 0o600 });
    chownSync(files.leases, uid, uid);
  };
  /**
   * Writes a file. Its folder belongs to root, so no other user can place a symbolic link there.
   * @returns whether the content changed
   */
  const write = (path: string, text: string): boolean => {
    if (existsSync(path) && readFileSync(path, 'utf8') === text) return false;
    writeFileSync(`${path}.new`, text, { mode: 0o640 });
    chownSync(`${path}.new`, 0, uid);
    renameSync(`${path}.new`, path);
    return true;
  };
  const start = async (network: NatNetwork): Promise<void> => {
    requireDnsmasq();
    rmSync(files.identity, { force: true });
    rmSync(log, { force: true });
    const stderr = openSync(log, 'a', 0o600);
    const { exit } = launchProgram(planDnsmasq(network, files, uid), {
      outlives: true,
      stdio: ['ignore', stderr, stderr],
    });
    closeSync(stderr);
    let isOver = false;
    const end = (): void => void (isOver = true);
    exit.then(end, end);
    // A signal that arrives before dnsmasq installed its handlers would end it.
    const hasStarted = (): boolean => STARTED.test(readFileTail(log, TAIL_BYTES));
    const limits = { everyMs: LOOK_MS, limitMs: START_TIMEOUT_MS };
    await until(() => hasStarted() || isOver, limits);
    if (!hasStarted()) throw notStarted(network, log);
  };
  /** Ends dnsmasq and keeps its files. */
  const stop = async (): Promise<void> => {
    const alive = findAlive();
    if (alive !== undefined) await end(alive);
    else if (readNoted() === undefined) await endAll(listServing(bridge, uid));
  };
  /** dnsmasq reads leases only when it starts. */
  const takeBackLeases = async (guests: readonly NetworkGuest[]): Promise<void> => {
    const readLeases = (): string => readFileTail(files.leases, MAX_LEASES_BYTES);
    const leases = readLeases();
    if (dropForeignLeases(leases, guests) === leases) return;
    await stop();
    writeFileSync(files.leases, dropForeignLeases(readLeases(), guests));
  };
  return {
    /**
     * Starts dnsmasq unless it runs, and gives it these guests.
     * @returns whether it had to be started
     * @throws AppError HOST_PREREQUISITE, NETWORK_SETUP
     */
    ensure: async (network: NatNetwork, guests: readonly NetworkGuest[]): Promise<boolean> => {
      await prepare();
      const isChanged = [
        write(files.reservations, formatReservations(guests)),
        write(files.hosts, formatHosts(guests, network)),
      ].includes(true);
      await takeBackLeases(guests);
      const alive = findAlive();
      if (alive === undefined) await start(network);
      else if (isChanged) signalProcess(alive, 'SIGHUP');
      const fd = openSync(log, 'a', 0o600);
      bound(fd, MAX_LOG_BYTES);
      closeSync(fd);
      return alive === undefined;
    },
    stop,
    /** Ends dnsmasq and removes its files. */
    remove: async (): Promise<void> => {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export type Dnsmasq = ReturnType<typeof createDnsmasq>;

async function end(process: ProcessIdentity): Promise<void> {
  if (await endProcess(process, { askMs: STOP_TIMEOUT_MS, killMs: KILL_TIMEOUT_MS })) return;
  throw new AppError('NETWORK_SETUP', `cannot kill dnsmasq (process ${process.pid})`);
}

async function endAll(processes: readonly ProcessIdentity[]): Promise<void> {
  for (const process of processes) await end(process);
}

/** Finds the processes of a bridge in /proc, when their identity file is lost. */
function listServing(bridge: string, uid: number): readonly ProcessIdentity[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => userOf(pid) === uid)
    .filter((pid) => readProcFile(pid, 'cmdline')?.split('\0').includes(`--interface=${bridge}`))
    .flatMap((pid) => readProcessIdentity(pid) ?? []);
}

function notStarted({ name }: NatNetwork, log: string): AppError {
  const stderr = readFileTail(log, TAIL_BYTES);
  const last = lastLineOf(stderr);
  return new AppError(
    'NETWORK_SETUP',
    `dnsmasq for network '${name}' did not start: ${last.replace(/^dnsmasq: /, '') || 'it reported no reason'}`,
    {
      details: { stderr },
      hint: /Permission denied/.test(last)
        ? 'Its user must be able to reach its files: make GNT_ROOT accessible (chmod 755).'
        : 'Another server may use the port. dnsmasq --bind-interfaces shares it with others.',
    },
  );
}

const PORT = 53;
const ASK_EVERY_MS = 1000;
/** A swapping host answers late. */
const PATIENCE_MS = 5000;
/** `version.bind`, class CHAOS, type TXT: dnsmasq answers it without an upstream server. */
const QUESTION = Buffer.from('4e54010000010000000000000776657273696f6e0462696e640000100003', 'hex');

/** Returns whether a DNS server answers at an address of this host. Never rejects. */
export async function answersQuestions(address: string): Promise<boolean> {
  const socket = createSocket('udp4');
  const over = new AbortController();
  const ask = async (): Promise<void> => {
    for (let passedMs = 0; passedMs < PATIENCE_MS; passedMs += ASK_EVERY_MS) {
      socket.send(QUESTION, PORT, address);
      await delay(ASK_EVERY_MS, undefined, { signal: over.signal });
    }
  };
  // A refusal means that the port is closed.
  socket.on('error', () => over.abort());
  try {
    const answer = once(socket, 'message', { signal: over.signal }).then(() => true);
    const silence = ask().then(() => false);
    return await Promise.race([answer, silence]);
  } catch {
    return false;
  } finally {
    over.abort();
    socket.close();
  }
}
