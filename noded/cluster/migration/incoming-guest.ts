import { rm, writeFile } from 'node:fs/promises';
import { connect, Socket } from 'node:net';
import { basename } from 'node:path';
import type { Duplex } from 'node:stream';
import type { GuestConnection, GuestHandover } from '#shared/contract/guest-handover.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { MachineExpected } from '#shared/contract/migration.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openSocketPair } from '#shared/sys/unix-sockets.ts';
import type { Arrival } from '../../storage/moving-disks.ts';
import { diskPath } from '../../storage/install-disks.ts';
import { argumentsOf, differenceOf, natureOf, requireFit } from '../../vmm/machine-nature.ts';
import { noSecrets } from '../../instances/parameters/job-secrets.ts';
import type { InstanceRunner } from '../../instances/instance-runner.ts';
import type { KeptMachine, MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import type { EndedConnections } from '../../net/channel/end-connections.ts';
import { memoryName, nodeNameOf } from './migration-target-contract.ts';

export type ExpectGuest = (
  instance: InstanceRecord,
  arrival: Pick<Arrival, 'pathOf'>,
  expected: MachineExpected,
  signal: AbortSignal,
) => Promise<IncomingGuest>;

export interface ExpectGuestDependencies {
  readonly runner: Pick<InstanceRunner, 'expect' | 'welcome'>;
  readonly keeper: Pick<MachineKeeper, 'kill' | 'whenGone'>;
  readonly metad: Pick<MetadCalls, 'arrive'>;
  /** Resets connections of the guest to its former host. */
  readonly endConnections: (ended: Omit<EndedConnections, 'namespacePath'>) => void;
  readonly logger: Logger;
  readonly instances: { findByUuid(uuid: string): Promise<InstanceRecord | undefined> };
  /**
   * Called when the QEMU process ended before its guest could continue. Report it as any other end.
   */
  readonly onLost: (uuid: string) => void;
}

const SOCKET = 'nbd';
const SEED = 'seed.img';

export function createExpectGuest(dependencies: ExpectGuestDependencies): ExpectGuest {
  return async (instance, arrival, expected, signal) => {
    const { runner, keeper } = dependencies;
    const kept = await startPaused(instance, arrival, expected, signal, runner);
    try {
      const difference = differenceOf(argumentsOf(kept.machine), expected.arguments);
      if (difference !== undefined) throw startedOtherwise(instance.name, difference);
      requireFit(expected.nature, await natureOf(kept.machine));
      return await receive(instance, kept, dependencies);
    } catch (error) {
      await keeper.kill(instance.uuid);
      throw error;
    }
  };
}

async function startPaused(
  instance: InstanceRecord,
  arrival: Pick<Arrival, 'pathOf'>,
  { nature, startedAtMs, seed, secrets }: MachineExpected,
  signal: AbortSignal,
  runner: Pick<InstanceRunner, 'expect'>,
): Promise<KeptMachine> {
  const seedPath = seed === null ? null : arrival.pathOf(SEED);
  const osParameters = new Map(
    Object.entries(secrets).map(([name, value]) => [name, new Secret(value)]),
  );
  try {
    if (seedPath !== null && seed !== null)
      await writeFile(seedPath, Buffer.from(seed, 'base64'), { mode: 0o600 });
    return await runner.expect(instance, {
      accelerator: nature.accelerator,
      startedAtMs,
      signal,
      files: {
        disks: instance.disks.map((_, index) => arrival.pathOf(basename(diskPath('', index)))),
        seed: seedPath,
      },
      secrets: { ...noSecrets, osParameters },
    });
  } finally {
    // QEMU has it open, or was not started.
    if (seedPath !== null) await rm(seedPath, { force: true });
  }
}

/** A QEMU process that waits here for a guest that runs on another node. */
async function receive(
  { uuid, disks }: InstanceRecord,
  kept: KeptMachine,
  dependencies: ExpectGuestDependencies,
) {
  const { runner, keeper, instances, metad, onLost } = dependencies;
  const { machine } = kept;
  const names = disks.map((_, index) => nodeNameOf(index));
  const [own, theirs] = openSocketPair();
  // From here on the socket owns the descriptor.
  let memory: Socket | undefined = new Socket({ fd: own, readable: true, writable: true });
  const streams = new Set<Duplex>();
  try {
    await machine.migration.receive(machine.pathOf(SOCKET), names, theirs);
  } catch (error) {
    memory.destroy();
    throw error;
  } finally {
    closeFd(theirs);
  }
  const keep = (stream: Duplex): Duplex => {
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
    return stream;
  };
  const unused = memory;
  let whole: Promise<void> | undefined;
  let connections: readonly GuestConnection[] = [];
  return {
    /** Resolves when the QEMU process has ended and is cleaned up. */
    gone: keeper.whenGone(uuid),
    /** Returns whether its node still has an open stream. */
    isFed: (): boolean => streams.size > 0,
    /** @throws AppError NOT_FOUND */
    openStream: (name: string): Promise<Duplex> => {
      if (name === memoryName && memory !== undefined) {
        const stream = memory;
        memory = undefined;
        return Promise.resolve(keep(stream));
      }
      if (!names.includes(name))
        throw new AppError('NOT_FOUND', `no incoming guest is called '${name}'`);
      return Promise.resolve(keep(connect({ path: machine.pathOf(SOCKET), allowHalfOpen: true })));
    },
    /** Resolves when all state has arrived. @throws AppError MIGRATION_FAILED */
    whenWhole: (signal: AbortSignal): Promise<void> =>
      (whole ??= machine.migration.endReceiving(signal).catch((error: unknown) => {
        throw signal.aborted || machine.isRunning() ? error : endedTooEarly(error);
      })),
    /** Takes over the guest's state in metad. */
    takeMetadata: async (handover: GuestHandover): Promise<void> => {
      await metad.arrive(uuid, handover);
      ({ connections } = handover);
    },
    /** Continues the guest, which now belongs to this node. May be repeated after a failure. */
    welcome: async (): Promise<'goes-on' | 'lost'> => {
      unused.destroy();
      const record = await instances.findByUuid(uuid);
      if (record === undefined) return 'goes-on';
      if (await runner.welcome(record)) {
        endConnections(kept, record, connections, dependencies);
        return 'goes-on';
      }
      // The end of a run was already reported.
      if (kept.kind === 'moving') onLost(uuid);
      return 'lost';
    },
    /** Removes the guest, which does not belong to this node. */
    refuse: async (): Promise<void> => {
      unused.destroy();
      await keeper.kill(uuid);
    },
  };
}

export type IncomingGuest = Awaited<ReturnType<typeof receive>>;

/** A guest with open connections only waits for its own timeouts. */
function endConnections(
  { device }: KeptMachine,
  { uuid, channel }: InstanceRecord,
  connections: readonly GuestConnection[],
  dependencies: ExpectGuestDependencies,
): void {
  if (device === null || channel === null) return;
  try {
    dependencies.endConnections({ device, guestIp: channel.ip, connections });
  } catch (error) {
    dependencies.logger.warn('arrival.connections-stay', { instance: uuid, err: error });
  }
}

function endedTooEarly(cause: unknown): AppError {
  return new AppError('MIGRATION_FAILED', 'the QEMU process that waited for the guest has ended', {
    hint: 'The guest keeps running on its old node. Read the log of gnt-noded on the target node, and repeat the migration.',
    cause,
  });
}

function startedOtherwise(name: string, difference: string): AppError {
  return new AppError(
    'NOT_SUPPORTED',
    `the QEMU process of '${name}' was started with other options than this node would use: ${difference}`,
    {
      hint: `Restart it with its present record (gnt-instance reboot -t full ${name}), then repeat the migration.`,
    },
  );
}
