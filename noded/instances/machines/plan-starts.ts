import type { InstanceRecord } from '#shared/contract/instance.ts';

/**
 * Plans which stopped instances the node starts: groups ordered by priority, each ordered by name.
 * Always includes instances that a job had stopped temporarily.
 * @param reason `boot`: the host was rebooted; `ended`: QEMU processes ended without a daemon
 */
export function planStarts(
  instances: readonly InstanceRecord[],
  reason: 'boot' | 'ended',
): readonly (readonly InstanceRecord[])[] {
  const wanted = instances.filter(
    (instance) =>
      isWantedUp(instance) &&
      (instance.stoppedByJob !== null ||
        (reason === 'boot' ? instance.autostart.boot : instance.autostart.restarts > 0)),
  );
  const byPriority = Map.groupBy(
    wanted.toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })),
    ({ autostart }) => autostart.priority,
  );
  return [...byPriority].toSorted(([a], [b]) => a - b).map(([, group]) => group);
}

/** Returns whether it is installed, and configured up or stopped temporarily by a job. */
export function isWantedUp({
  adminState,
  stoppedByJob,
  installState,
}: Pick<InstanceRecord, 'adminState' | 'stoppedByJob' | 'installState'>): boolean {
  const isMeant = adminState === 'up' || stoppedByJob !== null;
  return isMeant && (installState === 'installed' || installState === 'created');
}

/**
 * Returns the names of secrets that its start waits for, because they were lost with its last run.
 */
export function awaitedSecrets({ autostart, secretNames }: InstanceRecord): readonly string[] {
  return autostart.lostSecrets === 'wait' ? secretNames : [];
}
