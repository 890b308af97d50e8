import type { InstanceRecord } from '#shared/contract/instance.ts';

/** Entries in the folder of a node's disks. */
export interface NodeDisks {
  readonly node: string;
  readonly entries: readonly string[];
}

/** A submitted move or migration. */
export interface AskedMove {
  readonly to: string;
  /** Reported as successful, so it left nothing behind. */
  readonly isDone: boolean;
}

type Known = Pick<InstanceRecord, 'uuid' | 'name' | 'primaryNode'>;

const ON_ITS_WAY = /^(leaving|copying)-(.+)$/;

export function isOnItsWay(entry: string): boolean {
  return ON_ITS_WAY.test(entry);
}

/**
 * Finds problems with disks in transit after all jobs have ended. Pure.
 *
 * `copying-UUID` is left by an interrupted move. Its node cannot know that the move was
 * interrupted. It keeps the folder for ten minutes without data, and removes it by a sweep that
 * runs every ten minutes. So the folder may exist while the instance is on another node, or was
 * removed. Each folder belongs to a different unsuccessful move to that node. A folder for an
 * instance on this node is a problem, with or without its disks: the disks get their final name
 * when the record names the node, and no copy starts while they exist.
 *
 * `leaving-UUID` is the source of a move, after its record named the other node or while that was
 * unknown. It may exist until the node has asked the other one, at growing intervals, whether it
 * has the disks. So the other node must have them. For an instance on this node, the folder
 * returned to its name at the end of the job. For a removed instance it is gone.
 * @param removals number of instances with a job to remove them
 */
export function judgeMoving(
  disks: readonly NodeDisks[],
  instances: readonly Known[],
  moves: readonly AskedMove[],
  removals: number,
): readonly string[] {
  const has = (node: string, uuid: string): boolean =>
    disks.some((one) => one.node === node && one.entries.includes(uuid));
  let ownerless = 0;
  const problems = disks.flatMap(({ node, entries }) => {
    const wrong: string[] = [];
    let copies = 0;
    for (const entry of entries) {
      const [, what, uuid = ''] = ON_ITS_WAY.exec(entry) ?? [];
      if (what === undefined) continue;
      const owner = instances.find((one) => one.uuid === uuid);
      const of = `${entry} on ${node}, of ${owner?.name ?? 'nobody'}`;
      if (owner?.primaryNode === node) wrong.push(`${of}, which is there`);
      if (what === 'copying') {
        copies += 1;
        if (owner === undefined) ownerless += 1;
      } else if (owner === undefined) wrong.push(of);
      else if (owner.primaryNode !== node && !has(owner.primaryNode, uuid))
        wrong.push(`${of}, and ${owner.primaryNode} does not have it`);
    }
    const failed = moves.filter(({ to, isDone }) => to === node && !isDone).length;
    if (copies > failed)
      wrong.push(`${copies} copies on ${node}, and ${failed} moves to it did not succeed`);
    return wrong;
  });
  if (ownerless > removals)
    problems.push(`${ownerless} copies are nobody's, and ${removals} instances were to be removed`);
  return problems;
}
