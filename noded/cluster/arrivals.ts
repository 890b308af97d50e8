import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { ArrivalBegun, MovedFile } from '#shared/contract/move.ts';
import { requireTakesNew } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { Arrival, MovingDisks } from '../disks/moving-disks.ts';
import { noInstance } from '../records/instance-repository.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import type { Membership } from './membership.ts';
import type { Admission, NodeRoom } from './node-room.ts';
import type { Wanted } from './choose-node.ts';
import { settleArrival, settleDeparture, type SettleMovesDependencies } from './settle-moves.ts';

export interface ArrivalsDependencies extends SettleMovesDependencies {
  readonly moving: MovingDisks;
  readonly membership: Pick<Membership, 'requireMember'>;
  readonly nodes: Pick<NodeRegistry, 'flagsOf'>;
  readonly room: Pick<NodeRoom, 'admit'>;
  /** Whether an instance could run here, and be installed again. @throws AppError */
  readonly checkHere: (instance: InstanceRecord, signal: AbortSignal) => Promise<void>;
}

/**
 * Instances that come from other nodes: their files grow in a folder that is nobody's, and the room
 * that they need is kept. Nothing of it counts before the record says that the instance is this
 * node's, which the node that has it writes; `end` finds out, and so does the next daemon.
 */
export interface Arrivals extends AsyncDisposable {
  /**
   * Whether the instance can be taken; nothing is changed.
   * @throws AppError NODE_DRAINED, NO_ROOM, CONFLICT, and what it lacks of what the instance names
   */
  check(uuid: string, signal: AbortSignal): Promise<void>;
  /** One that was under way is ended first. @throws as `check`, and DISK_FULL */
  begin(uuid: string, files: readonly MovedFile[], signal: AbortSignal): Promise<ArrivalBegun>;
  /** @throws AppError NOT_FOUND (it has ended), VALIDATION, DISK_FULL */
  write(at: FileOfArrival, message: Buffer): Promise<void>;
  /** @throws AppError NOT_FOUND, CONFLICT, DISK_FULL */
  verify(
    at: Omit<FileOfArrival, 'name'>,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** @returns whether the instance is this node's */
  end(uuid: string): Promise<boolean>;
}

export interface FileOfArrival {
  readonly uuid: string;
  readonly session: string;
  readonly name: string;
}

interface Session {
  readonly id: string;
  readonly arrival: Arrival;
  readonly admission: Admission;
  readonly timer: NodeJS.Timeout;
}

/** Twice the patience of who sends: after so long without a word nobody does. */
const SILENCE_MS = 10 * 60_000;

export function createArrivals(dependencies: ArrivalsDependencies): Arrivals {
  return new Sessions(dependencies);
}

/** INVARIANTS: an instance has at most one session; what is done for it is done one after the other. */
class Sessions implements Arrivals {
  readonly #dependencies: ArrivalsDependencies;
  readonly #sessions = new Map<string, Session>();
  readonly #queue = new SerialQueue<string>();

  constructor(dependencies: ArrivalsDependencies) {
    this.#dependencies = dependencies;
  }

  async check(uuid: string, signal: AbortSignal): Promise<void> {
    const { room } = this.#dependencies;
    (await room.admit(await this.#require(uuid, signal))).withdraw();
  }

  begin(uuid: string, files: readonly MovedFile[], signal: AbortSignal): Promise<ArrivalBegun> {
    return this.#queue.run(uuid, async () => {
      const { nodeName, instances, moving, room } = this.#dependencies;
      const wanted = await this.#require(uuid, signal);
      if (await this.#settle(uuid)) throw isHere(wanted.name, nodeName);
      if ((await moving.listLeaving()).includes(uuid))
        await settleDeparture(uuid, this.#dependencies);
      const admission = await room.admit(wanted);
      try {
        const arrival = await moving.arrive(uuid, files);
        // What would end it, silence, is far away.
        const timer = setTimeout(() => this.#giveUp(uuid), SILENCE_MS).unref();
        const id = randomUUID();
        this.#sessions.set(uuid, { id, arrival, admission, timer });
        const record = await instances.findByUuid(uuid);
        if (record === undefined) throw noInstance(wanted.name);
        return { session: id, serialNo: record.serialNo };
      } catch (error) {
        if (!this.#sessions.has(uuid)) admission.withdraw();
        throw error;
      }
    });
  }

  write({ uuid, session, name }: FileOfArrival, message: Buffer): Promise<void> {
    return this.#queue.run(uuid, () => this.#find(uuid, session).arrival.write(name, message));
  }

  verify(
    { uuid, session }: Omit<FileOfArrival, 'name'>,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#queue.run(uuid, () => {
      const { arrival, timer } = this.#find(uuid, session);
      return arrival.verify(digests, signal).finally(() => timer.refresh());
    });
  }

  end(uuid: string): Promise<boolean> {
    return this.#queue.run(uuid, () => this.#settle(uuid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What they have is for the next daemon.
    for (const uuid of [...this.#sessions.keys()])
      await this.#queue.run(uuid, () => this.#close(uuid));
  }

  /** @throws AppError why this node does not take the instance */
  async #require(uuid: string, signal: AbortSignal): Promise<Wanted> {
    const { nodeName, owns, instances, membership, nodes, checkHere } = this.#dependencies;
    membership.requireMember();
    requireTakesNew(nodeName, await nodes.flagsOf(nodeName));
    const instance = await instances.findByUuid(uuid);
    if (instance === undefined) throw noInstance(uuid);
    if (owns(instance.primaryNode)) throw isHere(instance.name, nodeName);
    await checkHere(instance, signal);
    return wantedOf(instance);
  }

  #find(uuid: string, id: string): Session {
    const session = this.#sessions.get(uuid);
    if (session?.id !== id) {
      throw new AppError('NOT_FOUND', 'nothing of this instance is arriving any more', {
        hint: 'gnt-noded was started anew meanwhile, or heard nothing for ten minutes: repeat the move',
      });
    }
    session.timer.refresh();
    return session;
  }

  async #settle(uuid: string): Promise<boolean> {
    const isOwn = await settleArrival(uuid, this.#dependencies);
    await this.#close(uuid);
    return isOwn;
  }

  async #close(uuid: string): Promise<void> {
    const session = this.#sessions.get(uuid);
    if (session === undefined) return;
    this.#sessions.delete(uuid);
    clearTimeout(session.timer);
    session.admission.withdraw();
    await session.arrival[Symbol.asyncDispose]();
  }

  #giveUp(uuid: string): void {
    const { logger } = this.#dependencies;
    this.end(uuid).then(
      (isOwn) => logger.warn('arrival.given-up', { instance: uuid, isOwn }),
      (error: unknown) => {
        // A store that is away tells later.
        logger.warn('arrival.not-ended', { instance: uuid, err: error });
        this.#sessions.get(uuid)?.timer.refresh();
      },
    );
  }
}

function isHere(name: string, node: string): AppError {
  return new AppError('INSTANCE_STATE', `instance '${name}' is already on the node ${node}`);
}

/** What it takes of a node. */
export function wantedOf({ name, beparams, disks, tags }: InstanceRecord): Wanted {
  const diskBytes = disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return { name, ...beparams, diskBytes, tags };
}

/** Of a node that has no others beside it. */
export function noArrivals(): Arrivals {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError('NOT_SUPPORTED', 'this node is a cluster by itself: nothing comes from others'),
    );
  return {
    ...{ check: refuse, begin: refuse, write: refuse, verify: refuse, end: refuse },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
