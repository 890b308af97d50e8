import type { PromisedSpace } from '../../host/low-space.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';

/** The size to which this node's disks may grow. */
export type DiskPromise = Omit<PromisedSpace, 'totalBytes'>;

/** @throws AppError STORE_UNAVAILABLE */
export async function promiseOf({
  index,
  owns,
}: {
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly owns: (node: string) => boolean;
}): Promise<DiskPromise> {
  const own = (await index.list()).filter(({ primaryNode }) => owns(primaryNode));
  const promisedBytes = own.reduce((sum, { diskBytes }) => sum + diskBytes, 0);
  return { instances: own.length, promisedBytes };
}
