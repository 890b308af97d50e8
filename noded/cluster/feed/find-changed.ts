import type { RunningMachine } from '#shared/contract/instance.ts';
import type { IndexedInstance } from '../../records/instance-index.ts';
import type { SummaryParts } from '../membership/overview.ts';

export interface ChangedInstances {
  readonly changed: readonly ChangedInstance[];
  readonly removed: readonly IndexedInstance[];
}
export interface ChangedInstance {
  readonly now: SummaryParts;
  /** Undefined: it is new. */
  readonly before: IndexedInstance | undefined;
}

/**
 * Compares all instances with the last known ones, and updates these. Compares records by identity:
 * the index replaces the object of a changed record.
 */
export function findChanged(
  known: Map<string, SummaryParts>,
  all: readonly SummaryParts[],
): ChangedInstances {
  const changed: ChangedInstance[] = [];
  for (const now of all) {
    const { uuid } = now.instance;
    const before = known.get(uuid);
    if (before !== undefined && isSame(before, now)) continue;
    known.set(uuid, now);
    changed.push({ now, before: before?.instance });
  }
  return { changed, removed: known.size === all.length ? [] : removeMissing(known, all) };
}

function removeMissing(
  known: Map<string, SummaryParts>,
  all: readonly SummaryParts[],
): readonly IndexedInstance[] {
  const present = new Set(all.map(({ instance }) => instance.uuid));
  const removed = [...known.values()].filter(({ instance }) => !present.has(instance.uuid));
  for (const { instance } of removed) known.delete(instance.uuid);
  return removed.map(({ instance }) => instance);
}

function isSame(before: SummaryParts, now: SummaryParts): boolean {
  return (
    before.instance === now.instance &&
    before.status === now.status &&
    isSameMachine(before.running, now.running)
  );
}

function isSameMachine(before: RunningMachine | null, now: RunningMachine | null): boolean {
  if (before === null || now === null) return before === now;
  return (
    before.pid === now.pid &&
    before.startedAtMs === now.startedAtMs &&
    before.tap === now.tap &&
    before.halt?.sinceMs === now.halt?.sinceMs &&
    before.lostSecrets?.length === now.lostSecrets?.length
  );
}
