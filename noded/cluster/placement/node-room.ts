import { localDiskBytes } from '#shared/contract/disk-template.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import {
  exclusivePrefixes,
  judgeNode,
  type Candidate,
  type Judging,
  type Share,
  type Used,
  type Wanted,
} from './choose-node.ts';

/** Room reserved for an instance whose job has not ended. */
export interface Admission {
  /** Keeps the reservation until that job has ended. */
  becomes(job: number): void;
  /** Drops the reservation, since no job was made. */
  withdraw(): void;
}

export interface NodeRoomDependencies {
  readonly nodeName: string;
  readonly owns: (node: string) => boolean;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly nodes: Pick<NodeRegistry, 'flagsOf'>;
  readonly clusters: Pick<ClusterRepository, 'load'>;
  readonly measureRoom: () => Promise<HostRoom>;
  /** Measures the resources that an instance of this node uses now. */
  readonly measureUse: (instance: IndexedInstance) => Promise<Used>;
  /** Returns true until a job has ended. */
  readonly isActive: (job: number) => boolean;
}

interface Given {
  readonly wanted: Wanted;
  /** Null while the job is being written. */
  job: number | null;
}

const NOTHING: Used = { memoryMiB: 0, diskBytes: 0 };

/** Tracks this node's room for instances and its reservations. */
export function createNodeRoom({
  nodeName,
  owns,
  index,
  nodes,
  clusters,
  measureRoom,
  measureUse,
  isActive,
}: NodeRoomDependencies) {
  const given = new Set<Given>();
  const forgetEnded = (): void => {
    for (const one of given) if (one.job !== null && !isActive(one.job)) given.delete(one);
  };
  /** Reserves room for an instance that was put here explicitly, without a check. */
  const give = (wanted: Wanted): Admission => {
    forgetEnded();
    const one: Given = { wanted, job: null };
    given.add(one);
    return {
      becomes: (job) => {
        one.job = job;
      },
      withdraw: () => void given.delete(one),
    };
  };
  /** Returns a function that counts reservations synchronously, after all measurements. */
  const look = async (): Promise<() => Candidate> => {
    forgetEnded();
    // If a reservation's job ends from here on, its record may be missing from the list. This copy
    // still has it.
    const before = [...given];
    const [flags, room] = await Promise.all([nodes.flagsOf(nodeName), measureRoom()]);
    const own = (await index.list()).filter(({ primaryNode }) => owns(primaryNode));
    const names = new Set(own.map(({ name }) => name));
    const shares: Share[] = [];
    for (const instance of own)
      shares.push({ ...shareOf(instance), inUse: await measureUse(instance) });
    return () => {
      const promised = [...new Set([...before, ...given])]
        .filter(({ wanted: { name } }) => !names.has(name))
        .map(({ wanted }) => ({ ...wanted, inUse: NOTHING }));
      return { name: nodeName, flags, room, taken: [...shares, ...promised] };
    };
  };
  return {
    candidate: async (): Promise<Candidate> => (await look())(),
    note: give,
    /**
     * Checks and reserves room without an await in between, so that two requests cannot both get
     * the last of it.
     * @throws AppError NO_ROOM
     */
    admit: async (wanted: Wanted, judging?: Judging): Promise<Admission> => {
      const exclusive = exclusivePrefixes((await clusters.load()).tags ?? []);
      const candidate = (await look())();
      const reasons = judgeNode(candidate, wanted, exclusive, judging);
      if (reasons.length === 0) return give(wanted);
      throw new AppError('NO_ROOM', reasons.join('; '), {
        details: { name: wanted.name, node: nodeName },
        hint: 'Another query for it is running',
      });
    },
  };
}

export type NodeRoom = ReturnType<typeof createNodeRoom>;

export function shareOf({ beparams, diskBytes, tags }: IndexedInstance): Share {
  return { memoryMiB: beparams.memoryMiB, vcpus: beparams.vcpus, diskBytes, tags };
}

/** Returns the demand of an existing instance. */
export function wantedOf(instance: InstanceRecord): Wanted {
  const { name, beparams, tags, nics } = instance;
  return { name, ...beparams, diskBytes: localDiskBytes(instance), tags, nics };
}
