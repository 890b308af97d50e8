import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { StartOptions } from '../../vmm/hypervisor.ts';
import type { MachineNic } from '../../vmm/machine.ts';
import type { ChannelTap } from '../../net/channel/channel-network.ts';
import type { ChannelGuest } from '../../net/channel/nft-rules.ts';
import type { NicTaps } from '../../net/tenant/nic-taps.ts';
import { installationParameters } from '../parameters/installation-parameters.ts';

/**
 * Purpose of a QEMU process. `moving`: an incoming guest, or a guest that left, so that the record
 * need not name this node.
 */
export type MachineKind = 'run' | 'appliance' | 'moving';

/** Opens a NIC for QEMU. The caller closes the TAP after QEMU has it. */
export async function openNic(
  nicTaps: Pick<NicTaps, 'open'>,
  nic: InstanceRecord['nics'][number],
  instanceName: string,
): Promise<{ nic: MachineNic; tap: ChannelTap | null }> {
  const { uuid, port, mac } = nic;
  const part = port === undefined ? undefined : { uuid, port };
  if (nic.mode === 'user') {
    const isPublicOnly = nic.reach === 'public';
    return { nic: { kind: 'user', mac, isPublicOnly, part }, tap: null };
  }
  const tap = await nicTaps.open(nic, instanceName);
  return { nic: { kind: 'tap', fd: tap.fd, mac, device: tap.device, channel: false, part }, tap };
}

export function channelGuestOf(instance: InstanceRecord, kind: MachineKind): ChannelGuest {
  const { channel } = instance;
  const hvparams = kind === 'appliance' ? installationParameters(instance) : instance.hvparams;
  const rate = hvparams.metadata_connection_rate;
  return {
    ip: channel.ip,
    mac: channel.mac,
    newConnectionsPerSecond: rate,
    boots: instance.bootEnv !== null && instance.bootEnv !== LOCAL_BOOT_ENV,
  };
}

/** Describes a QEMU process for a later daemon. */
export function describeMachine(
  { instance, kind }: { readonly instance: InstanceRecord; readonly kind: MachineKind },
  device: string,
): Pick<StartOptions, 'meta' | 'note'> {
  const meta = { kind, instance: instance.name, device };
  return kind === 'run' ? { meta, note: JSON.stringify(instance) } : { meta };
}
