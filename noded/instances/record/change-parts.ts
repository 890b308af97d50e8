import type { InstanceDisk, InstanceNic, InstanceRecord } from '#shared/contract/instance.ts';
import { DEFAULT_LINK, type nicSpec } from '#shared/contract/machine-parameters.ts';
import { ANY_ADDRESS } from '#shared/contract/network.ts';
import {
  type DiskChange,
  MAX_DISKS,
  MAX_NICS,
  type NicChange,
  type WhichPart,
} from '#shared/contract/part-changes.ts';
import { nicNetwork, type NicNetwork } from '#shared/contract/static-network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { z } from 'zod';
import { placeBeside, placeOf } from './place-disk.ts';
import { refuseUnusableMacs } from './refuse-macs.ts';

export interface PartContext {
  readonly newUuid: () => string;
  /** Draws a MAC. The NIC's network may have its own prefix. */
  readonly newMac: (networkName?: string) => string;
  /** Where disks of the template `plain` are created. */
  readonly vgName?: string | undefined;
  readonly zfsPool?: string | undefined;
}

type Named = Pick<InstanceRecord, 'name'>;
type Modification = Extract<NicChange, { action: 'modify' }>['changes'];

/** Returns the NIC of a record from a request. Pure except for the context. */
export function planNic(
  nic: z.infer<typeof nicSpec>,
  { newUuid, newMac }: PartContext,
): InstanceNic {
  const { networkName } = nic;
  const made: InstanceNic = {
    uuid: newUuid(),
    mac: nic.mac === 'auto' ? newMac(networkName) : nic.mac,
    mode: nic.mode,
    link: nic.link ?? defaultLink(nic.mode),
    name: nic.name ?? null,
    ip: nic.ip ?? null,
    network: nic.network ?? null,
    ...(nic.reach === 'public' && { reach: nic.reach }),
  };
  if (networkName === undefined) return requireNoPool(made);
  return inNetwork(made, networkName, nic);
}

/**
 * Puts a NIC into a network, which alone decides its mode, link and addresses.
 * @throws AppError VALIDATION
 */
function inNetwork(
  made: InstanceNic,
  networkName: string,
  given: { readonly [Key in 'mode' | 'link' | 'network']?: unknown },
): InstanceNic {
  const foreign =
    given.mode === 'user'
      ? 'mode=user'
      : given.link != null
        ? 'link='
        : given.network != null
          ? 'gateway=, dns=, search=, routes=, mtu= or a prefix'
          : null;
  if (foreign === null) return { ...made, mode: 'bridged', link: null, network: null, networkName };
  throw new AppError('VALIDATION', `a NIC in network '${networkName}' does not take ${foreign}`, {
    hint: `Write network=${networkName},ip=pool, or ip= with an address of the network.`,
  });
}

/** @throws AppError VALIDATION */
function requireNoPool(made: InstanceNic): InstanceNic {
  if (made.ip !== ANY_ADDRESS) return made;
  throw new AppError('VALIDATION', 'ip=pool needs a network', {
    hint: 'Write network=NAME,ip=pool. List the networks: gnt-network list',
  });
}

/** Returns the NICs after all changes. @throws AppError VALIDATION */
export function changeNics(
  { name, nics, channel }: Named & Pick<InstanceRecord, 'nics' | 'channel'>,
  changes: readonly NicChange[],
  context: PartContext,
): InstanceNic[] {
  const planned = [...nics];
  for (const change of changes) {
    if (change.action === 'add') {
      const at = change.at ?? planned.length;
      if (at > planned.length)
        throw new AppError('VALIDATION', `NIC ${at} of '${name}' would leave a gap`, {
          hint: `It has ${counted(planned.length, 'NIC')}. Leave out the number to append one.`,
        });
      planned.splice(at, 0, planNic(change.nic, context));
      continue;
    }
    const index = indexOf(planned, change.which, { kind: 'NIC', of: name });
    const [nic] = planned.splice(index, 1);
    if (change.action === 'modify' && nic !== undefined)
      planned.splice(
        index,
        0,
        changeNic(nic, change.changes, context, `NIC ${index} of '${name}'`),
      );
  }
  refuseMoreThan(MAX_NICS, planned, 'NIC', name);
  if (changes.length > 0) refuseUnusableMacs([channel, ...planned].map(({ mac }) => mac));
  return planned;
}

/**
 * Returns the disks after all changes. The first disk has the system and stays. At most one is
 * removed at a time, so that the files identify it after a kill: see `changeDiskFiles`.
 * @throws AppError VALIDATION
 */
export function changeDisks(
  { name, disks, diskTemplate }: Named & Pick<InstanceRecord, 'disks' | 'diskTemplate'>,
  changes: readonly DiskChange[],
  { newUuid, vgName, zfsPool }: Pick<PartContext, 'newUuid' | 'vgName' | 'zfsPool'>,
): InstanceDisk[] {
  if (changes.length > 0 && diskTemplate === 'diskless') {
    throw new AppError('VALIDATION', `'${name}' is diskless and cannot get disks`, {
      hint: 'Create another instance with disks.',
    });
  }
  const isRemoved = changes.some(({ action }) => action === 'remove');
  if (isRemoved && changes.length > 1) {
    throw new AppError(
      'VALIDATION',
      `removing a disk of '${name}' cannot be combined with other disk changes`,
      {
        hint: 'Make the other changes before or afterwards.',
      },
    );
  }
  const planned = [...disks];
  for (const change of changes) {
    if (change.action === 'add') {
      const { sizeBytes, name: diskName = null } = change.disk;
      const place = placeOf(diskTemplate, placeBeside(disks) ?? { vgName, zfsPool });
      planned.push({ uuid: newUuid(), name: diskName, sizeBytes, ...place });
      continue;
    }
    const index = indexOf(planned, change.which, { kind: 'disk', of: name });
    if (change.action === 'remove' && index === 0) {
      throw new AppError(
        'VALIDATION',
        `disk 0 of '${name}' holds its system and cannot be removed`,
        {
          hint: `Remove the instance with all its disks: gnt-instance remove ${name}`,
        },
      );
    }
    const [disk] = planned.splice(index, 1);
    if (change.action === 'modify' && disk !== undefined)
      planned.splice(index, 0, { ...disk, name: change.changes.name });
  }
  refuseMoreThan(MAX_DISKS, planned, 'disk', name);
  return planned;
}

function changeNic(
  nic: InstanceNic,
  changes: Modification,
  { newMac }: PartContext,
  what: string,
): InstanceNic {
  const { mac, mode, link, name, ip, network } = changes;
  const networkName =
    changes.networkName === null ? undefined : (changes.networkName ?? nic.networkName);
  const changedMode = mode ?? nic.mode;
  const isOther = changedMode !== nic.mode || nic.networkName !== networkName;
  const { networkName: former, ...rest } = nic;
  // Addresses from the former network do not apply in another one.
  const kept = former === networkName ? rest : { ...rest, ip: null, network: null };
  const made: InstanceNic = {
    ...kept,
    mac: mac === 'auto' ? newMac(networkName) : (mac ?? nic.mac),
    mode: changedMode,
    link: link ?? (link === undefined && !isOther ? nic.link : defaultLink(changedMode)),
    name: name === undefined ? nic.name : name,
    ip: ip === undefined ? kept.ip : ip,
    ...(changes.reach !== undefined && { reach: changes.reach }),
  };
  if (networkName !== undefined) {
    const { network: planned, ...placed } = inNetwork(made, networkName, {
      ...{ mode, link },
      network: Object.values(network ?? {}).some((value) =>
        Array.isArray(value) ? value.length > 0 : value != null,
      )
        ? network
        : null,
    });
    return { ...placed, network: made.ip === nic.ip ? kept.network : planned };
  }
  return requireNoPool({
    ...made,
    network: network === undefined ? kept.network : changeNetwork(kept.network, network, what),
  });
}

/** @returns null for a NIC that uses DHCP and leaves the MTU to the guest */
function changeNetwork(
  network: NicNetwork | null,
  changes: NonNullable<Modification['network']>,
  what: string,
): NicNetwork | null {
  const checked = nicNetwork.safeParse({ ...network, ...changes });
  if (!checked.success) {
    const faults = checked.error.issues.map(({ message }) => message).join('; ');
    throw new AppError('VALIDATION', `${what}: ${faults}`, {
      hint: 'Omitted values stay as they are. Unset a value with none, for example: gateway=none',
    });
  }
  const { addresses, mtu } = checked.data;
  return addresses.length === 0 && mtu === null ? null : checked.data;
}

function defaultLink(mode: InstanceNic['mode']): string | null {
  return mode === 'bridged' ? DEFAULT_LINK : null;
}

function indexOf(
  parts: readonly { readonly uuid: string; readonly name: string | null }[],
  which: WhichPart,
  { kind, of }: { readonly kind: 'NIC' | 'disk'; readonly of: string },
): number {
  const matches = [...parts.keys()].filter((index) =>
    typeof which === 'number'
      ? index === (which === -1 ? parts.length - 1 : which)
      : parts[index]?.uuid === which || parts[index]?.name === which,
  );
  const [index, another] = matches;
  if (index === undefined) {
    const last = parts.length - 1;
    const there = last < 1 ? counted(parts.length, kind) : `${kind}s 0 to ${last}`;
    const what = which === -1 ? kind : `${kind} ${JSON.stringify(which)}`;
    throw new AppError('VALIDATION', `'${of}' has no ${what}: it has ${there}`, {
      hint: `Show them: gnt-instance info ${of}`,
    });
  }
  if (another === undefined) return index;
  throw new AppError('VALIDATION', `'${of}' has two ${kind}s named ${which}`, {
    hint: `Give the number: ${index} or ${another}`,
  });
}

function refuseMoreThan(most: number, parts: readonly unknown[], kind: string, name: string): void {
  if (parts.length <= most) return;
  throw new AppError('VALIDATION', `'${name}' would have ${counted(parts.length, kind)}`, {
    hint: `The limit is ${most}.`,
  });
}

function counted(count: number, kind: string): string {
  return `${count === 0 ? 'no' : count} ${kind}${count === 1 ? '' : 's'}`;
}
