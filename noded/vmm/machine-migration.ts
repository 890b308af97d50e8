import { z } from 'zod';
import { until } from '#shared/abort/until.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixListener } from '#shared/sys/unix-sockets.ts';

type Arguments = Readonly<Record<string, unknown>>;

/** QMP commands of a migration. QEMU receives copies of descriptors. */
interface MigrationQmp {
  execute(command: string, args?: Arguments, timeoutMs?: number): Promise<unknown>;
  executeWith(fd: number, command: string, args?: Arguments): Promise<unknown>;
}

/** Properties that the migration target's QEMU must share. */
export interface MachineFacts {
  /** Major and minor version. */
  readonly qemu: string;
  /** With its version: the present meaning of `q35`. */
  readonly board: string;
}

export interface MigrationState {
  /** RunState of QEMU's qapi/run-state.json. */
  readonly run: string;
  /** MigrationStatus of qapi/migration.json. */
  readonly migration: string;
  readonly isMirrored: boolean;
}

export interface MirrorProgress {
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** All blocks are copied. From now on a write of the guest completes when both sides have it. */
  readonly areReady: boolean;
}

export interface SendingProgress {
  readonly status: string;
  readonly remainingBytes: number;
  readonly totalBytes: number;
  /** Bytes per second that the guest dirties, and that are sent. */
  readonly dirtyRate: number;
  readonly sentRate: number;
  readonly passes: number;
}

/** Controls both sides of a migration in QEMU. All methods throw AppError QMP. */
export interface MachineMigration {
  describe(): Promise<MachineFacts>;
  state(): Promise<MigrationState>;
  /** Copies a disk, and later writes to it, to an NBD server behind a descriptor. */
  mirror(disk: string, fd: number): Promise<void>;
  /** @throws AppError MIGRATION_FAILED if a copy ended */
  mirrors(): Promise<MirrorProgress>;
  /** Ends the copies. The target has all writes and receives no more. @throws as `mirrors` */
  endMirrors(): Promise<void>;
  /** Sends memory, and pauses the guest when the rest needs less than this time. */
  send(fd: number, downtimeMs: number): Promise<void>;
  allowDowntime(downtimeMs: number): Promise<void>;
  sending(): Promise<SendingProgress>;
  /** Sends the rest of a paused guest. The guest does not continue by itself. */
  sendRest(): Promise<void>;
  /**
   * Cancels the migration and continues a paused guest. Also allowed after `sendRest` and without a
   * migration.
   */
  abandon(): Promise<void>;
  /** Exports the disks on a unix socket, and waits for memory on a descriptor. */
  receive(socketPath: string, disks: readonly string[], fd: number): Promise<void>;
  /** Ends the exports when all state has arrived. @throws AppError MIGRATION_FAILED */
  endReceiving(signal: AbortSignal): Promise<void>;
}

const POLL_MS = 20;
/**
 * Time for the last steps of a paused guest. Disks may be slow; the rest of the memory is small.
 */
const REST_TIMEOUT_MS = 120_000;
const MIRROR = 'mirror-';
const AWAY = 'away-';
const SENDING = ['setup', 'active', 'pre-switchover', 'device', 'cancelling', 'wait-unplug'];
/** More than any link. The migration target limits the speed. */
const UNLIMITED_BYTES_PER_S = 2 ** 34;

const version = z.object({ qemu: z.object({ major: z.number(), minor: z.number() }) });
const runState = z.object({ status: z.string() });
const jobs = z.array(
  z.object({
    id: z.string(),
    status: z.string(),
    'current-progress': z.number(),
    'total-progress': z.number(),
    error: z.string().optional(),
  }),
);
type Job = z.infer<typeof jobs>[number];
const migrationInfo = z.object({
  status: z.string().default('none'),
  'error-desc': z.string().optional(),
  ram: z
    .object({
      remaining: z.number(),
      total: z.number(),
      mbps: z.number(),
      'dirty-pages-rate': z.number(),
      'page-size': z.number(),
      'dirty-sync-count': z.number(),
    })
    .optional(),
});

export function createMachineMigration(connect: () => Promise<MigrationQmp>): MachineMigration {
  return new QmpMigration(connect);
}

class QmpMigration implements MachineMigration {
  readonly #connect: () => Promise<MigrationQmp>;

  constructor(connect: () => Promise<MigrationQmp>) {
    this.#connect = connect;
  }

  async describe(): Promise<MachineFacts> {
    const { qemu } = version.parse(await this.#ask('query-version'));
    const board = await this.#ask('qom-get', { path: '/machine', property: 'type' });
    return { qemu: `${qemu.major}.${qemu.minor}`, board: z.string().parse(board) };
  }

  async state(): Promise<MigrationState> {
    const { status: run } = runState.parse(await this.#ask('query-status'));
    const { status: migration } = await this.#info();
    return { run, migration, isMirrored: (await this.#mirrorJobs()).length > 0 };
  }

  async mirror(disk: string, fd: number): Promise<void> {
    const [device, name] = [disk, `${AWAY}${disk}`];
    await this.#give(name, fd);
    const server = { type: 'fd', str: name };
    await this.#ask('blockdev-add', {
      driver: 'nbd',
      'node-name': name,
      export: disk,
      server,
      // The target file is sparse. It receives zeroes as holes and keeps them so.
      'detect-zeroes': 'unmap',
      discard: 'unmap',
    });
    await this.#ask('blockdev-mirror', {
      'job-id': `${MIRROR}${disk}`,
      device,
      target: name,
      sync: 'full',
      'copy-mode': 'write-blocking',
      'auto-dismiss': false,
      'on-source-error': 'report',
      'on-target-error': 'report',
    });
  }

  async mirrors(): Promise<MirrorProgress> {
    const all = await this.#mirrorJobs();
    for (const job of all) if (job.status === 'concluded') throw mirrorFailed(job);
    return {
      doneBytes: all.reduce((sum, job) => sum + job['current-progress'], 0),
      totalBytes: all.reduce((sum, job) => sum + job['total-progress'], 0),
      areReady: all.every(({ status }) => status === 'ready'),
    };
  }

  async endMirrors(): Promise<void> {
    for (const { id } of await this.#mirrorJobs())
      await this.#ask('block-job-cancel', { device: id, force: false });
    for (const job of await this.#concluded()) if (job.error !== undefined) throw mirrorFailed(job);
    await this.#dismissMirrors();
  }

  async send(fd: number, downtimeMs: number): Promise<void> {
    await this.#ask('migrate-set-capabilities', {
      capabilities: ['events', 'pause-before-switchover', 'auto-converge'].map((capability) => ({
        capability,
        state: true,
      })),
    });
    await this.#ask('migrate-set-parameters', { 'max-bandwidth': UNLIMITED_BYTES_PER_S });
    await this.allowDowntime(downtimeMs);
    await this.#give('memory', fd);
    await this.#ask('migrate', { uri: 'fd:memory' });
  }

  async allowDowntime(downtimeMs: number): Promise<void> {
    await this.#ask('migrate-set-parameters', { 'downtime-limit': downtimeMs });
  }

  async sending(): Promise<SendingProgress> {
    const { status, ram, 'error-desc': reason } = await this.#info();
    if (status === 'failed' || status === 'cancelled')
      throw failed(
        `QEMU failed to send the memory of the guest${reason === undefined ? '' : `: ${reason}`}`,
      );
    return {
      status,
      remainingBytes: ram?.remaining ?? 0,
      totalBytes: ram?.total ?? 0,
      dirtyRate: (ram?.['dirty-pages-rate'] ?? 0) * (ram?.['page-size'] ?? 0),
      sentRate: ((ram?.mbps ?? 0) * 1e6) / 8,
      passes: ram?.['dirty-sync-count'] ?? 0,
    };
  }

  async sendRest(): Promise<void> {
    await this.#ask('migrate-continue', { state: 'pre-switchover' });
    await within(
      REST_TIMEOUT_MS,
      'QEMU did not send the rest of the memory of the guest',
      async () => {
        return (await this.sending()).status === 'completed';
      },
    );
  }

  async abandon(): Promise<void> {
    if (SENDING.includes((await this.#info()).status)) await this.#ask('migrate_cancel');
    await within(REST_TIMEOUT_MS, 'QEMU did not cancel the migration', async () => {
      return !SENDING.includes((await this.#info()).status);
    });
    for (const { id, status } of await this.#mirrorJobs())
      if (status !== 'concluded') await this.#ask('block-job-cancel', { device: id, force: true });
    await this.#concluded();
    await this.#dismissMirrors();
    const { status } = runState.parse(await this.#ask('query-status'));
    if (['postmigrate', 'finish-migrate', 'paused'].includes(status))
      await this.#ask('cont', {}, REST_TIMEOUT_MS);
  }

  async receive(socketPath: string, disks: readonly string[], fd: number): Promise<void> {
    const qmp = await this.#connect();
    const listener = openUnixListener(socketPath);
    try {
      await this.#give('disks', listener);
    } finally {
      closeFd(listener);
    }
    await qmp.execute('nbd-server-start', { addr: { type: 'fd', data: { str: 'disks' } } });
    for (const disk of disks) {
      await qmp.execute('block-export-add', {
        type: 'nbd',
        id: `export-${disk}`,
        name: disk,
        'node-name': disk,
        writable: true,
      });
    }
    await this.#give('memory', fd);
    await qmp.execute('migrate-incoming', { uri: 'fd:memory' });
  }

  async endReceiving(signal: AbortSignal): Promise<void> {
    await within(
      REST_TIMEOUT_MS,
      'the memory of the guest did not arrive completely',
      async () => {
        const { run, migration } = await this.state();
        return run === 'paused' && migration === 'completed';
      },
      signal,
    );
    await this.#ask('nbd-server-stop');
  }

  /** QEMU uses the descriptor by this name. */
  async #give(name: string, fd: number): Promise<void> {
    await (await this.#connect()).executeWith(fd, 'getfd', { fdname: name });
  }

  async #ask(command: string, args: Arguments = {}, timeoutMs?: number): Promise<unknown> {
    return (await this.#connect()).execute(command, args, timeoutMs);
  }

  async #info(): Promise<z.infer<typeof migrationInfo>> {
    return migrationInfo.parse(await this.#ask('query-migrate'));
  }

  async #mirrorJobs(): Promise<readonly Job[]> {
    const all = jobs.parse(await this.#ask('query-jobs'));
    return all.filter(({ id }) => id.startsWith(MIRROR));
  }

  /** Waits until all mirrors have ended. */
  async #concluded(): Promise<readonly Job[]> {
    let all: readonly Job[] = [];
    await within(REST_TIMEOUT_MS, 'the copies of the disks did not finish', async () => {
      all = await this.#mirrorJobs();
      return all.every(({ status }) => status === 'concluded');
    });
    return all;
  }

  async #dismissMirrors(): Promise<void> {
    for (const { id } of await this.#mirrorJobs()) await this.#ask('job-dismiss', { id });
    const nodes = z
      .array(z.object({ 'node-name': z.string() }))
      .parse(await this.#ask('query-named-block-nodes', { flat: true }));
    for (const { 'node-name': name } of nodes)
      if (name.startsWith(AWAY)) await this.#ask('blockdev-del', { 'node-name': name });
  }
}

async function within(
  timeoutMs: number,
  late: string,
  isDone: () => Promise<boolean>,
  signal?: AbortSignal,
): Promise<void> {
  if (!(await until(isDone, { everyMs: POLL_MS, limitMs: timeoutMs, signal })))
    throw failed(`${late} within ${timeoutMs / 1000} s`);
}

function mirrorFailed({ id, error }: Job): AppError {
  const disk = id.slice(MIRROR.length);
  return failed(`cannot copy ${disk}${error === undefined ? '' : `: ${error}`}`);
}

function failed(message: string): AppError {
  return new AppError('MIGRATION_FAILED', message, {
    hint: 'The guest continues on its former node. Check the logs of gnt-noded on both nodes, then repeat the migration.',
  });
}
