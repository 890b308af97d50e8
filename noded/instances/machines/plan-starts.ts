import type { InstanceRecord } from '#shared/contract/instance.ts';

/**
 * Plans which of the instances that do not run the node starts by itself: groups in the order of
 * their priority, each in the order of names. Pure.
 * What a job had stopped, and would have started again, is started whatever else was said.
 * @param reason `boot`: the host was rebooted; `ended`: machines ended while no daemon was there
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

/** Whether it is configured up, or stopped for a job's time alone, and not half installed. */
export function isWantedUp({
  adminState,
  stoppedByJob,
  installState,
}: Pick<InstanceRecord, 'adminState' | 'stoppedByJob' | 'installState'>): boolean {
  const isMeant = adminState === 'up' || stoppedByJob !== null;
  return isMeant && (installState === 'installed' || installState === 'created');
}

/** Names of the secrets that it waits for: nobody has them since its last run. Pure. */
export function awaitedSecrets({ autostart, secretNames }: InstanceRecord): readonly string[] {
  return autostart.lostSecrets === 'wait' ? secretNames : [];
}
