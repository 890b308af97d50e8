import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { MachineExpected, MachineNature } from '#shared/contract/migration.ts';
import type { ArrivalBegun, ArrivalEnded, MovedFile, RemainsEnded } from '#shared/contract/move.ts';
import { requireTakesNew } from '#shared/contract/node-flags.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { Arrival, MovingDisks } from '../../storage/moving-disks.ts';
import { noInstance } from '../../records/instance-repository.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { Membership } from '../membership/membership.ts';
import { type Admission, type NodeRoom, wantedOf } from '../placement/node-room.ts';
import { requireItsFiles } from './incoming-files.ts';
import type { IncomingGuest, ExpectGuest } from './incoming-guest.ts';
import type { MigrationTarget, IncomingFile } from './migration-target-contract.ts';
import { ReceivingFiles } from './receive-files.ts';
import { isHere, isNotYours, nothingArrives } from './target-refusals.ts';
import { settleArrival, settleDeparture, type SettleMovesDependencies } from './settle-moves.ts';

export interface MigrationTargetDependencies extends SettleMovesDependencies {
  readonly moving: MovingDisks;
  readonly disks: SettleMovesDependencies['disks'] & Pick<InstanceDisks, 'listCopies'>;
  readonly membership: Pick<Membership, 'requireMember'>;
  readonly nodes: Pick<NodeRegistry, 'flagsOf'>;
  readonly room: Pick<NodeRoom, 'admit'>;
  /** Checks whether an instance could run and be reinstalled here. @throws AppError */
  readonly checkHere: (instance: InstanceRecord, signal: AbortSignal) => Promise<void>;
  /** Checks whether a running guest could continue here. @throws AppError NOT_SUPPORTED */
  readonly checkMachine: (nature: MachineNature) => Promise<void>;
  readonly expectGuest: ExpectGuest;
}

interface Session {
  readonly id: string;
  readonly arrival: Arrival;
  readonly receiving: ReceivingFiles;
  readonly admission: Admission;
  /** Sending node. */
  readonly from: string;
  /** Runs between two calls. */
  timer: NodeJS.Timeout | undefined;
  /** Waiting QEMU process of a running instance. */
  guest?: IncomingGuest;
  isAwaited?: boolean;
  /** The failure to end was logged. Several attempts a second follow. */
  isTold?: boolean;
}

/** Twice the sender's limit. */
const SILENCE_MS = 10 * 60_000;
/** Limit for a waiting QEMU process without an open stream. */
const GUEST_SILENCE_MS = 30_000;
/** Interval of reads of the record for a paused guest, in case `end` is never called. */
const LOOK_MS = 250;
/** The same for a stopped instance, whose disks are unused until then. */
const STOPPED_LOOK_MS = 1000;
const ARRIVAL = { isArrival: true } as const;

export function createMigrationTarget(dependencies: MigrationTargetDependencies): MigrationTarget {
  return new Sessions(dependencies);
}

/** INVARIANTS: an instance has at most one session; its operations run one after the other. */
class Sessions implements MigrationTarget {
  readonly #dependencies: MigrationTargetDependencies;
  readonly #sessions = new Map<string, Session>();
  readonly #queue = new SerialQueue<string>();

  constructor(dependencies: MigrationTargetDependencies) {
    this.#dependencies = dependencies;
  }

  async check(uuid: string, signal: AbortSignal, nature?: MachineNature): Promise<void> {
    const { room, checkMachine } = this.#dependencies;
    if (nature !== undefined) await checkMachine(nature);
    const wanted = wantedOf(await this.#require(uuid, signal));
    (await room.admit(wanted, ARRIVAL)).withdraw();
  }

  begin(
    { uuid, from }: Pick<IncomingFile, 'uuid' | 'from'>,
    files: readonly MovedFile[],
    signal: AbortSignal,
  ): Promise<ArrivalBegun> {
    return this.#queue.run(uuid, async () => {
      const { nodeName, instances, moving, room } = this.#dependencies;
      const instance = await this.#require(uuid, signal);
      const wanted = wantedOf(instance);
      if (from === undefined || from !== instance.primaryNode) throw isNotYours(wanted.name, from);
      requireItsFiles(instance, files);
      if ((await this.#settle(uuid)).isTaken) throw isHere(wanted.name, nodeName);
      if ((await moving.listLeaving()).includes(uuid))
        await settleDeparture(uuid, this.#dependencies);
      const admission = await room.admit(wanted, ARRIVAL);
      try {
        const arrival = await moving.arrive(uuid, files);
        const session: Session = {
          id: randomUUID(),
          arrival,
          receiving: new ReceivingFiles(arrival, files),
          admission,
          from,
          timer: undefined,
        };
        this.#sessions.set(uuid, session);
        this.#awaitNext(uuid, session);
        const record = await instances.findByUuid(uuid);
        if (record === undefined) throw noInstance(wanted.name);
        return { session: session.id, serialNo: record.serialNo, takesStreams: true };
      } catch (error) {
        if (!this.#sessions.has(uuid)) admission.withdraw();
        throw error;
      }
    });
  }

  write(at: IncomingFile, message: Buffer): Promise<void> {
    return this.#run(at, (arrival) => arrival.write(at.name, message));
  }

  async openFile({ uuid, session: id, name }: IncomingFile): Promise<Duplex> {
    // Only the node that began the session knows its id.
    const session = this.#sessions.get(uuid);
    if (session?.id !== id) throw nothingArrives();
    return session.receiving.open(name);
  }

  async verify(
    at: Omit<IncomingFile, 'name'>,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#run(at, async (arrival, receiving) => {
      await receiving.end();
      await arrival.verify(digests, signal);
    });
    this.#awaitOwner(at.uuid, this.#find(at.uuid, at.session, at.from));
  }

  expect(
    at: Omit<IncomingFile, 'name'>,
    expected: MachineExpected,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#queue.run(at.uuid, async () => {
      const session = this.#find(at.uuid, at.session, at.from);
      const { checkMachine, expectGuest, instances } = this.#dependencies;
      await checkMachine(expected.nature);
      const instance = await instances.findByUuid(at.uuid);
      if (instance === undefined || session.guest !== undefined) throw noInstance(at.uuid);
      const guest = await expectGuest(instance, session.arrival, expected, signal);
      session.guest = guest;
      clearTimeout(session.timer);
      this.#awaitNext(at.uuid, session);
      void guest.gone.then(() => this.#endOf(at.uuid, session));
    });
  }

  handOver(at: Omit<IncomingFile, 'name'>, handover: GuestHandover): Promise<void> {
    return this.#queue.run(at.uuid, async () => {
      const { guest } = this.#find(at.uuid, at.session, at.from);
      if (guest === undefined) throw nothingArrives();
      await guest.takeMetadata(handover);
    });
  }

  sync(at: Omit<IncomingFile, 'name'>): Promise<void> {
    return this.#run(at, (arrival) => arrival.sync());
  }

  async openStream({ uuid, session: id, name }: IncomingFile): Promise<Duplex> {
    // Only the node that began the session knows its id.
    const session = this.#sessions.get(uuid);
    if (session?.id !== id || session.guest === undefined) throw nothingArrives();
    return session.guest.openStream(name);
  }

  async awaitGuest(at: Omit<IncomingFile, 'name'>, signal: AbortSignal): Promise<number> {
    const session = this.#find(at.uuid, at.session, at.from);
    if (session.guest === undefined) throw nothingArrives();
    await session.guest.whenWhole(signal);
    await session.arrival.sync();
    return this.#queue.run(at.uuid, async () => {
      this.#find(at.uuid, at.session, at.from);
      const record = await this.#dependencies.instances.findByUuid(at.uuid);
      if (record === undefined) throw noInstance(at.uuid);
      this.#awaitOwner(at.uuid, session);
      return record.serialNo;
    });
  }

  end({ uuid, from }: Pick<IncomingFile, 'uuid' | 'from'>): Promise<ArrivalEnded> {
    return this.#queue.run(uuid, async () => {
      if (from !== undefined) await this.#requireSender(uuid, from);
      return this.#settle(uuid);
    });
  }

  endRemains({ uuid, from }: Pick<IncomingFile, 'uuid' | 'from'>): Promise<RemainsEnded> {
    return this.#queue.run(uuid, async () => {
      const { instances, disks, moving } = this.#dependencies;
      const instance = await instances.findByUuid(uuid);
      if (instance === undefined || instance.primaryNode !== from)
        throw isNotYours(instance?.name ?? uuid, from);
      const hadArrived = this.#sessions.has(uuid) || (await disks.listCopies()).includes(uuid);
      if (hadArrived) await this.#settle(uuid);
      const hadLeft = (await moving.listLeaving()).includes(uuid);
      if (hadLeft) await settleDeparture(uuid, this.#dependencies);
      return { hadArrived, hadLeft };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The next daemon settles the files.
    for (const uuid of [...this.#sessions.keys()])
      await this.#queue.run(uuid, () => this.#close(uuid));
  }

  /** @throws AppError with the reason against the instance */
  async #require(uuid: string, signal: AbortSignal): Promise<InstanceRecord> {
    const { nodeName, owns, instances, membership, nodes, checkHere } = this.#dependencies;
    membership.requireMember();
    requireTakesNew(nodeName, await nodes.flagsOf(nodeName));
    const instance = await instances.findByUuid(uuid);
    if (instance === undefined) throw noInstance(uuid);
    if (owns(instance.primaryNode)) throw isHere(instance.name, nodeName);
    await checkHere(instance, signal);
    return instance;
  }

  /** A folder may also belong to a copy, which only this node knows. */
  async #requireSender(uuid: string, from: string): Promise<void> {
    const { owns, instances } = this.#dependencies;
    const session = this.#sessions.get(uuid);
    if (session?.from === from) return;
    const instance = await instances.findByUuid(uuid);
    if (session === undefined && instance !== undefined) {
      const { primaryNode } = instance;
      // The former owner repeats the call when the answer was lost.
      if (primaryNode === from || owns(primaryNode)) return;
    }
    throw isNotYours(instance?.name ?? uuid, from);
  }

  /** Stops the timer during the work, which may take any time. */
  #run<T>(
    { uuid, session: id, from }: Omit<IncomingFile, 'name'>,
    work: (arrival: Arrival, receiving: ReceivingFiles) => Promise<T>,
  ): Promise<T> {
    return this.#queue.run(uuid, async () => {
      const session = this.#find(uuid, id, from);
      clearTimeout(session.timer);
      try {
        return await work(session.arrival, session.receiving);
      } finally {
        this.#awaitNext(uuid, session);
      }
    });
  }

  #find(uuid: string, id: string, from: string | undefined): Session {
    const session = this.#sessions.get(uuid);
    if (session?.id !== id || session.from !== from) {
      throw nothingArrives();
    }
    return session;
  }

  async #settle(uuid: string): Promise<ArrivalEnded> {
    await this.#sessions.get(uuid)?.receiving.end();
    const isTaken = await settleArrival(uuid, this.#dependencies);
    const guest = this.#sessions.get(uuid)?.guest;
    // Before the session is closed: after a failure the next look retries.
    const isLost = isTaken && (await guest?.welcome()) === 'lost';
    await this.#close(uuid);
    if (!isTaken) await guest?.refuse();
    return { isTaken, isLost };
  }

  /** Starts to look at the record, which may name this node from now on. */
  #awaitOwner(uuid: string, session: Session): void {
    if (!session.isAwaited) void this.#takeWhenOwn(uuid, session);
    session.isAwaited = true;
  }

  /** Looks at the record, because the former owner may never call. */
  async #takeWhenOwn(uuid: string, session: Session): Promise<void> {
    const { instances, owns, logger } = this.#dependencies;
    const lookMs = session.guest === undefined ? STOPPED_LOOK_MS : LOOK_MS;
    for (;;) {
      await sleep(lookMs, undefined, { ref: false });
      if (this.#sessions.get(uuid) !== session) return;
      try {
        const record = await instances.findByUuid(uuid);
        if (record !== undefined && owns(record.primaryNode)) await this.#endOf(uuid, session);
      } catch (error) {
        logger.debug('arrival.not-looked', { instance: uuid, err: error });
      }
    }
  }

  /** Ends the arrival unless a newer session replaced this one. */
  async #endOf(uuid: string, session: Session): Promise<void> {
    try {
      await this.#queue.run(uuid, async () => {
        if (this.#sessions.get(uuid) === session) await this.#settle(uuid);
      });
    } catch (error) {
      // The next look, the timeout or the next daemon retries.
      const level = session.isTold ? 'debug' : 'error';
      session.isTold = true;
      this.#dependencies.logger[level]('arrival.not-ended', { instance: uuid, err: error });
    }
  }

  async #close(uuid: string): Promise<void> {
    const session = this.#sessions.get(uuid);
    if (session === undefined) return;
    this.#sessions.delete(uuid);
    clearTimeout(session.timer);
    session.admission.withdraw();
    await session.receiving.end();
    await session.arrival[Symbol.asyncDispose]();
  }

  /** Starts the timeout. */
  #awaitNext(uuid: string, session: Session): void {
    const silenceMs = session.guest === undefined ? SILENCE_MS : GUEST_SILENCE_MS;
    const timer = setTimeout(() => this.#giveUp(uuid, session, timer), silenceMs).unref();
    session.timer = timer;
  }

  /** @param timer that ran out; another operation may have replaced it meanwhile */
  #giveUp(uuid: string, session: Session, timer: NodeJS.Timeout): void {
    const { logger } = this.#dependencies;
    const given = this.#queue.run(uuid, async () => {
      if (this.#sessions.get(uuid)?.timer !== timer) return;
      const isFed = session.guest?.isFed() ?? session.receiving.silenceMs() < SILENCE_MS;
      if (isFed) return this.#awaitNext(uuid, session);
      logger.warn('arrival.given-up', { instance: uuid, ...(await this.#settle(uuid)) });
    });
    given.catch((error: unknown) => {
      // The store may be unavailable.
      logger.warn('arrival.not-ended', { instance: uuid, err: error });
      if (session.timer === timer) this.#awaitNext(uuid, session);
    });
  }
}
