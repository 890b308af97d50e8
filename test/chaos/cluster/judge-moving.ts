import type { InstanceRecord } from '#shared/contract/instance.ts';

/** What there is in the folder of a node's disks. */
export interface NodeDisks {
  readonly node: string;
  readonly entries: readonly string[];
}

/** A move or a migration that was asked for. */
export interface AskedMove {
  readonly to: string;
  /** It was told as done, and left nothing. */
  readonly isDone: boolean;
}

type Known = Pick<InstanceRecord, 'uuid' | 'name' | 'primaryNode'>;

const ON_ITS_WAY = /^(leaving|copying)-(.+)$/;

export function isOnItsWay(entry: string): boolean {
  return ON_ITS_WAY.test(entry);
}

/**
 * What is wrong with disks that are on their way when all jobs have ended. Pure.
 *
 * `copying-UUID` is what came of a move that was cut off. Its node does not know that, keeps it for
 * ten minutes in which nobody sends more, and removes it by a sweep that comes every ten minutes.
 * So it may be there as long as the instance is another node's, or was removed since; each is of a
 * move of its own to that node that did not succeed. One of an instance that is this node's is
 * wrong, whether its disks are beside it or not: they get their name when the record names the
 * node, and nothing arrives where they are.
 *
 * `leaving-UUID` is what a move has sent, after its record named the other node or when that was
 * not known. It may be there until that node was asked, at growing intervals, whether it has the
 * disks: so it does have them. Of this node's own instance it came back with the end of the job,
 * and of one that was removed it has gone.
 * @param removals how many instances were to be removed
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
