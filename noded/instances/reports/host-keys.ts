import type { SshInfo } from '#shared/contract/host-keys.ts';
import type { GuestReport, InstanceRecord } from '#shared/contract/instance.ts';

/**
 * Whose word counts of a guest's SSH host keys. They come over its own channel, so nobody but this
 * guest can have said them; what it says first after an installation is trusted, anything else
 * later is shown and not trusted until an operator accepts it. Pure.
 */

type Keyed = Pick<InstanceRecord, 'instanceId' | 'hostKeys'>;

/** The record's keys once a guest has said its own. */
export function keepHostKeys(
  instance: Keyed,
  said: readonly string[],
): Pick<InstanceRecord, 'hostKeys'> {
  const isFirst = trustedKeys(instance).length === 0 && said.length > 0;
  return {
    hostKeys: isFirst ? { instanceId: instance.instanceId, keys: [...said] } : instance.hostKeys,
  };
}

/** What an operator says that they are, of the present installation. */
export function acceptHostKeys(
  { instanceId }: Pick<InstanceRecord, 'instanceId'>,
  keys: readonly string[],
): InstanceRecord['hostKeys'] {
  return keys.length === 0 ? null : { instanceId, keys: [...keys] };
}

/** @param report what the guest of the present run said; null when nothing runs */
export function describeSsh(
  instance: Keyed & Pick<InstanceRecord, 'guestReport'>,
  report: GuestReport | null,
): SshInfo {
  const trusted = trustedKeys(instance);
  const said = report?.hostKeys ?? [];
  return {
    // The user of the last boot counts until this one says its own again.
    user: report?.loginUser ?? instance.guestReport?.loginUser ?? null,
    // Keys that were said this moment, and first, are written down within a second.
    hostKeys: trusted.length > 0 ? trusted : (report?.firstHostKeys ?? []),
    saidHostKeys: said,
  };
}

/** The keys of this installation: those of an earlier one are another machine's. */
function trustedKeys({ instanceId, hostKeys }: Keyed): string[] {
  return hostKeys?.instanceId === instanceId ? hostKeys.keys : [];
}
