import { readdir, readFile, readlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import type { Duplex } from 'node:stream';
import { pause } from '#shared/abort/until.ts';
import type { GuestConnection } from '#shared/contract/guest-handover.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, tellableMessage } from '#shared/errors/app-error.ts';
import { reveal } from '#shared/secret/secret.ts';
import { joinStreams } from '#shared/stream/join-streams.ts';
import type { SendRate } from '#shared/stream/send-rate.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openSocketPair } from '#shared/sys/unix-sockets.ts';
import { diskPath } from '../../storage/install-disks.ts';
import type { MovingDisks } from '../../storage/moving-disks.ts';
import { argumentsOf, natureOf } from '../../vmm/machine-nature.ts';
import type { Machine } from '../../vmm/machine.ts';
import { hasSeedDisk } from '../../instances/view/cloud-init-datasource.ts';
import type { MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import type { ListedChannel } from '../../net/channel/list-connections.ts';
import type { MigrationTargetClient } from './migration-target-client.ts';
import { memoryName, nodeNameOf } from './migration-target-contract.ts';
import { removeHere, withdraw, type MoveDependencies } from './move-instance.ts';
import { isRepeating, planDowntime, tellRates } from './plan-migration.ts';
import { goOn, tellMetad } from './settle-guests.ts';
import { decideDeparture } from './settle-moves.ts';

export interface MigrateDependencies extends MoveDependencies {
  readonly moving: MoveDependencies['moving'] & Pick<MovingDisks, 'departRunning'>;
  readonly keeper: Pick<MachineKeeper, 'become' | 'get' | 'kill'>;
  readonly metad: Pick<MetadCalls, 'secrets' | 'leave' | 'stay'>;
  /** Lists the kernel's connections to a guest over its channel. */
  readonly listConnections: (
    channel: Omit<ListedChannel, 'namespacePath'>,
  ) => Promise<readonly GuestConnection[]>;
  readonly seedPathOf: (instance: InstanceRecord) => string;
}

interface Session {
  readonly uuid: string;
  readonly session: string;
}

const POLL_MS = 50;
/** Time for the target to load the rest of a paused guest and to sync its disks. */
const SWITCH_TIMEOUT_MS = 120_000;
/** Reports of the guest also change its record and are no reason to fail. */
const MAX_COMMITS = 10;

/**
 * Moves a running instance to another node without a restart of its guest. The target prepares a
 * paused QEMU with channel and metadata. Disks are mirrored, then memory is sent until the rest
 * fits into the allowed downtime. One commit of the record is the switch. It is made while both
 * guests are paused and the target has synced all state. Before it the guest continues here after
 * any failure; after it the guest belongs to the target (settle-guests.ts).
 * @throws AppError the target's refusal, MIGRATION_FAILED, NODE_UNREACHABLE, CONFLICT
 */
export async function migrateInstance(
  { instance, machine }: { readonly instance: InstanceRecord; readonly machine: Machine },
  node: string,
  context: JobContext,
  dependencies: MigrateDependencies,
): Promise<void> {
  const { target, keeper, moving, rate } = dependencies;
  const { uuid, name } = instance;
  const { migration } = machine;
  await using streams = new AsyncDisposableStack();
  using departure = await moving.departRunning(instance);
  let stoodStillAtMs = 0;
  let isSwitching = false;
  try {
    const at = await beginThere(instance, context, target);
    const expected = await describe(instance, machine, dependencies);
    await target.expect(at, expected, context.signal);
    const open = (stream: string, give: (fd: number) => Promise<void>): Promise<void> =>
      connectQemu(() => target.openStream({ ...at, name: stream }, context.signal), give, {
        streams,
        rate,
      });
    for (const [index] of instance.disks.entries())
      await open(nodeNameOf(index), (fd) => migration.mirror(nodeNameOf(index), fd));
    await untilMirrored(machine, context);
    await target.sync(at, context.signal);
    if (machine.accelerator === 'tcg') {
      // TCG can miss that a page was written again. On a busy host a guest waited endlessly on the
      // target for a lock that was free.
      stoodStillAtMs = performance.now();
      context.report.log('without KVM the guest pauses while its memory is sent', 'warn');
      await machine.pause();
      // A paused guest costs more than a full link.
      rate?.lift();
    }
    await open(memoryName, (fd) => migration.send(fd, planDowntime(0)));
    await untilStanding(machine, context);
    if (stoodStillAtMs === 0) stoodStillAtMs = performance.now();
    rate?.lift();
    isSwitching = true;
    await handOver(instance, { node, at, machine, departure }, dependencies);
  } catch (error) {
    if (!(await hasLeft(uuid, isSwitching, dependencies))) {
      const cause = machine.isRunning() ? error : endedMeanwhile(name, error);
      await goOnHere(instance, machine, context, dependencies);
      await withdraw(uuid, node, context, target);
      throw cause;
    }
  }
  // From now on the end of this process is not reported as the end of a run.
  await keeper.become(instance, 'moving');
  const removal = removeHere(uuid, node, context, dependencies).then(() => {
    const stillMs = Math.round(performance.now() - stoodStillAtMs);
    context.report.log(`${name} now runs on ${node}; its guest paused for ${stillMs} ms at most`);
  });
  await removal;
  await keeper.kill(uuid);
}

async function beginThere(
  { uuid, disks }: InstanceRecord,
  { signal }: JobContext,
  target: MigrationTargetClient,
): Promise<Session> {
  const files = disks.map(({ sizeBytes }, index) => ({
    name: basename(diskPath('', index)),
    sizeBytes,
  }));
  return { uuid, session: (await target.begin(uuid, files, signal)).session };
}

/** Describes all state that the record lacks. Secrets are in memory on both nodes. */
async function describe(
  instance: InstanceRecord,
  machine: Machine,
  { metad, seedPathOf }: MigrateDependencies,
) {
  const { uuid, communication, secretNames } = instance;
  const hasSecrets = communication && secretNames.length > 0;
  const secrets = hasSecrets ? await metad.secrets(uuid) : new Map<string, never>();
  const seed = hasSeedDisk(instance) ? await readOpenFile(machine.pid, seedPathOf(instance)) : null;
  return {
    nature: await natureOf(machine),
    startedAtMs: machine.startedAtMs,
    arguments: [...argumentsOf(machine)],
    seed: seed?.toString('base64') ?? null,
    secrets: Object.fromEntries([...secrets].map(([name, value]) => [name, reveal(value)])),
  };
}

/** Reads a file that a process has open and that may be deleted. */
async function readOpenFile(pid: number, path: string): Promise<Buffer> {
  const folder = `/proc/${pid}/fd`;
  for (const fd of await readdir(folder)) {
    const name = await readlink(`${folder}/${fd}`).catch(() => '');
    if (name === path || name === `${path} (deleted)`) return readFile(`${folder}/${fd}`);
  }
  throw new AppError('MIGRATION_FAILED', `the QEMU process no longer has the device ${path}`, {
    hint: 'Start a new QEMU process (gnt-instance reboot -t full), then repeat the migration.',
  });
}

/** Gives QEMU one end of a socket pair, and joins the other with the stream. */
async function connectQemu(
  open: () => Promise<Duplex>,
  give: (fd: number) => Promise<void>,
  { streams, rate }: { readonly streams: AsyncDisposableStack; readonly rate: SendRate | null },
): Promise<void> {
  const stream = await open();
  streams.defer(() => void stream.destroy());
  const [own, theirs] = openSocketPair();
  try {
    const socket = new Socket({ fd: own, readable: true, writable: true, allowHalfOpen: true });
    streams.defer(() => void socket.destroy());
    joinStreams(socket, stream, rate?.slow());
    await give(theirs);
  } finally {
    closeFd(theirs);
  }
}

async function untilMirrored(
  { migration }: Machine,
  { signal, report }: JobContext,
): Promise<void> {
  for (;;) {
    const { doneBytes, totalBytes, areReady } = await migration.mirrors();
    report.progress('sending disks', Math.min(doneBytes, totalBytes), totalBytes);
    if (areReady) return;
    await pause(POLL_MS, signal);
    signal.throwIfAborted();
  }
}

async function untilStanding(
  { migration }: Machine,
  { signal, report }: JobContext,
): Promise<void> {
  let downtimeMs = planDowntime(0);
  let repeatingSinceMs: number | undefined;
  for (;;) {
    const progress = await migration.sending();
    if (progress.status === 'pre-switchover') return;
    await migration.mirrors();
    const { totalBytes, remainingBytes } = progress;
    if (totalBytes > 0) report.progress('sending memory', totalBytes - remainingBytes, totalBytes);
    if (isRepeating(progress)) repeatingSinceMs ??= performance.now();
    const wanted = planDowntime(performance.now() - (repeatingSinceMs ?? performance.now()));
    if (wanted > downtimeMs) {
      downtimeMs = wanted;
      report.log(tellRates(progress, downtimeMs), 'warn');
      await migration.allowDowntime(downtimeMs);
    }
    await pause(POLL_MS, signal);
    signal.throwIfAborted();
  }
}

interface Switch {
  readonly node: string;
  readonly at: Session;
  readonly machine: Machine;
  readonly departure: { leave(): Promise<void> };
}

/** Hands over the paused guest. A cancelled job also completes this. */
async function handOver(
  instance: InstanceRecord,
  { node, at, machine, departure }: Switch,
  dependencies: MigrateDependencies,
): Promise<void> {
  const { migration, halt } = machine;
  if (halt !== null) throw new AppError('MIGRATION_FAILED', 'a disk error paused the guest');
  const signal = AbortSignal.timeout(SWITCH_TIMEOUT_MS);
  // Concurrent, to shorten the pause.
  await bothOf(sendRest(migration), handOverMetadata(instance, at, dependencies, signal));
  // Before the commit, so that a crash leaves no doubt about the disks.
  const left = departure.leave();
  for (let commits = 1; ; commits += 1) {
    const [serialNo] = await bothOf(dependencies.target.awaitGuest(at, signal), left);
    if (await commit(instance, { node, serialNo }, dependencies)) return;
    if (commits === MAX_COMMITS)
      throw new AppError(
        'CONFLICT',
        `'${instance.name}' was changed too often during the migration`,
      );
  }
}

async function sendRest(migration: Machine['migration']): Promise<void> {
  await migration.endMirrors();
  await migration.sendRest();
}

/** Freezes the guest's metadata here until the guest continues. */
async function handOverMetadata(
  instance: InstanceRecord,
  at: Session,
  dependencies: MigrateDependencies,
  signal: AbortSignal,
): Promise<void> {
  if (!instance.communication) return;
  const { metad, target } = dependencies;
  // Before metad closes them: some of them vanish then.
  const connections = await connectionsOf(instance, dependencies);
  await target.handOver(at, { ...(await metad.leave(instance.uuid)), connections }, signal);
}

/** A guest with open connections only waits for its own timeouts. */
async function connectionsOf(
  { uuid, channel }: InstanceRecord,
  { keeper, listConnections, logger }: MigrateDependencies,
): Promise<readonly GuestConnection[]> {
  const device = keeper.get(uuid)?.device ?? null;
  if (device === null || channel === null) return [];
  try {
    return await listConnections({ device, guestIp: channel.ip });
  } catch (error) {
    logger.warn('departure.connections-stay', { instance: uuid, err: error });
    return [];
  }
}

/** Rejects only after both have settled. */
async function bothOf<A, B>(one: Promise<A>, other: Promise<B>): Promise<readonly [A, B]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

/** @returns false if the record was changed after the target had read it */
async function commit(
  { uuid, name, primaryNode }: InstanceRecord,
  { node, serialNo }: { readonly node: string; readonly serialNo: number },
  { instances }: MigrateDependencies,
): Promise<boolean> {
  let isOutdated = false;
  await instances.update(uuid, (current) => {
    if (current.primaryNode !== primaryNode)
      throw new AppError('CONFLICT', `'${name}' was handed over to another node meanwhile`);
    isOutdated = current.serialNo !== serialNo;
    if (isOutdated) return current;
    // Sequence numbers of guest reports belong to the metad of a node.
    const guestReport = current.guestReport && { ...current.guestReport, afterSequence: 0 };
    return { ...current, primaryNode: node, guestReport };
  });
  return !isOutdated;
}

/** A commit with an error may have succeeded. The record decides. */
async function hasLeft(
  uuid: string,
  isSwitching: boolean,
  dependencies: MigrateDependencies,
): Promise<boolean> {
  return isSwitching && (await decideDeparture(uuid, dependencies)) !== undefined;
}

async function goOnHere(
  { uuid, communication }: InstanceRecord,
  machine: Machine,
  { report }: JobContext,
  dependencies: MigrateDependencies,
): Promise<void> {
  const { migration } = machine;
  // Also after its end: its next guest is served here.
  if (!machine.isRunning()) return communication ? tellMetad(uuid, dependencies) : undefined;
  try {
    await (communication ? goOn(uuid, migration, dependencies) : migration.abandon());
  } catch (error) {
    report.log(
      `QEMU does not end the migration (${tellableMessage(error)}): a restart of gnt-noded resumes the guest`,
      'warn',
    );
  }
}

function endedMeanwhile(name: string, cause: unknown): AppError {
  return new AppError(
    'MIGRATION_FAILED',
    `the QEMU process of '${name}' ended during the migration`,
    {
      hint: 'The guest may have powered off: gnt-instance info shows the reason.',
      cause,
    },
  );
}
