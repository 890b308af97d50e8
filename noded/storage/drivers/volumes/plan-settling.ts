import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OwnVolume } from './volume-names.ts';

/** A change to complete after a kill, a power cut or an unreachable store. */
export type SettlingStep =
  | { readonly kind: 'remove' | 'become-disk' | 'activate'; readonly volume: OwnVolume }
  | { readonly kind: 'become-snapshot'; readonly volume: OwnVolume; readonly snapshot: string }
  | { readonly kind: 'zero'; readonly volume: OwnVolume; readonly fromBytes: number };

export interface SettlingRecord {
  readonly disks: readonly Pick<InstanceRecord['disks'][number], 'uuid'>[];
  /** IDs of the last installation that succeeded, and of the last restoration. */
  readonly currentIds: readonly (string | null)[];
  readonly snapshots: readonly Pick<InstanceRecord['snapshots'][number], 'uuid'>[];
  /** False while a job may still fill volumes of an installation. */
  readonly isDecided: boolean;
}

/**
 * Plans the end of interrupted changes. The record decides: a volume on its way becomes one of the
 * record's disks or is removed. A volume with a final name and no record stays, since the store may
 * have lost the record. Pure.
 * @param volumes all of one instance
 */
export function planSettling(
  volumes: readonly OwnVolume[],
  { disks, snapshots, currentIds, isDecided }: SettlingRecord,
): readonly SettlingStep[] {
  const isOnRecord = ({ disk }: OwnVolume): boolean => disks.some(({ uuid }) => uuid === disk);
  const isSuccessor = ({ state }: OwnVolume): boolean =>
    state.kind === 'next' && currentIds.includes(state.installation);
  const hasSuccessor = ({ disk }: OwnVolume): boolean =>
    volumes.some((one) => one.disk === disk && isSuccessor(one));
  const stepsOf = (volume: OwnVolume): readonly SettlingStep[] => {
    const { state, isActive, dirtyFromBytes } = volume;
    const gone = { kind: 'remove', volume } as const;
    const kept = { kind: 'become-disk', volume } as const;
    switch (state.kind) {
      case 'new':
        return isDecided ? [gone] : [];
      case 'ready':
      case 'leaving':
        return isOnRecord(volume) ? [kept] : [gone];
      case 'next':
        if (isSuccessor(volume)) return [kept];
        return isDecided ? [gone] : [];
      case 'snapshotting': {
        const { snapshot } = state;
        const isKept = snapshots.some(({ uuid }) => uuid === snapshot);
        return [isKept ? { kind: 'become-snapshot', volume, snapshot } : gone];
      }
      case 'snapshot':
        return [];
      case 'disk':
        if (hasSuccessor(volume)) return [gone];
        return [
          ...(isActive ? [] : [{ kind: 'activate', volume } as const]),
          ...(dirtyFromBytes === null
            ? []
            : [{ kind: 'zero', volume, fromBytes: dirtyFromBytes } as const]),
        ];
    }
  };
  // A disk leaves its name before its successor takes it.
  return volumes.flatMap(stepsOf).toSorted((a, b) => orderOf(a) - orderOf(b));
}

function orderOf({ kind }: SettlingStep): number {
  return kind === 'remove' ? 0 : 1;
}
