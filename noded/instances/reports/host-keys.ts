import type { SshInfo } from '#shared/contract/host-keys.ts';
import type { GuestReport, InstanceRecord } from '#shared/contract/instance.ts';

/**
 * Decides which SSH host keys of a guest are trusted. They arrive over its own channel, so no other
 * guest can send them. The first keys after an installation are trusted. Later ones are shown, but
 * an operator must accept them. Pure.
 */

type Keyed = Pick<InstanceRecord, 'instanceId' | 'hostKeys'>;

/** Returns the record's keys after a guest reported its own. */
export function keepHostKeys(
  instance: Keyed,
  said: readonly string[],
): Pick<InstanceRecord, 'hostKeys'> {
  const isFirst = trustedKeys(instance).length === 0 && said.length > 0;
  return {
    hostKeys: isFirst ? { instanceId: instance.instanceId, keys: [...said] } : instance.hostKeys,
  };
}

/** Returns the keys that an operator accepts for the present installation. */
export function acceptHostKeys(
  { instanceId }: Pick<InstanceRecord, 'instanceId'>,
  keys: readonly string[],
): InstanceRecord['hostKeys'] {
  return keys.length === 0 ? null : { instanceId, keys: [...keys] };
}

/** @param report of the present run; null if it does not run */
export function describeSsh(
  instance: Keyed & Pick<InstanceRecord, 'guestReport'>,
  report: GuestReport | null,
): SshInfo {
  const trusted = trustedKeys(instance);
  const said = report?.hostKeys ?? [];
  return {
    // The user of the last boot applies until this boot reports one.
    user: report?.loginUser ?? instance.guestReport?.loginUser ?? null,
    // The first keys are written within a second; until then only the report has them.
    hostKeys: trusted.length > 0 ? trusted : (report?.firstHostKeys ?? []),
    saidHostKeys: said,
  };
}

/** Returns the keys of this installation; those of an earlier one do not count. */
function trustedKeys({ instanceId, hostKeys }: Keyed): string[] {
  return hostKeys?.instanceId === instanceId ? hostKeys.keys : [];
}
