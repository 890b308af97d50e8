import { explainSilence } from '#shared/contract/boot-silence.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Dialect } from '#shared/contract/primitives.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * What a stock cloud-init looks at before any network: its ds-identify reads DMI and file system
 * labels.
 */
export interface Smbios {
  readonly manufacturer: string;
  readonly product: string;
  readonly serial: string;
  readonly uuid: string;
}

/** What decides where a guest reads its data from. */
type Described = Pick<
  InstanceRecord,
  | 'name'
  | 'communication'
  | 'seedDisk'
  | 'dialects'
  | 'nics'
  | 'instanceId'
  | 'networkConfig'
  | 'hvparams'
  | 'metadataToken'
>;

const MANUFACTURER = 'gnt';
const PRODUCT = 'KVM instance';

/** The dialect that SMBIOS points a stock cloud-init at: the first of the list that it knows. */
export function datasourceDialect(
  dialects: readonly Dialect[],
): Exclude<Dialect, 'ganeti'> | undefined {
  return dialects.find((name) => name !== 'ganeti');
}

/**
 * A UUID that no cloud-init takes for Amazon's. Since 25.1 its ds-identify needs nothing else than
 * a UUID that begins with `ec2`, in either order of the bytes: about one random one in 2,048. Such
 * a guest asks whoever answers 169.254.169.254 for four minutes, twice, when no channel does.
 */
export function withoutEc2Look(uuid: string): string {
  return uuid.replace(/^ec2/i, '0c2').replace(/^(.{4}2.)ec/i, '$10c');
}

/**
 * SMBIOS strings of an instance: they decide which datasource a stock cloud-init uses.
 * With a seed disk or without the channel they point nowhere.
 */
export function planSmbios(instance: InstanceRecord): Smbios {
  const plain = {
    manufacturer: MANUFACTURER,
    product: PRODUCT,
    serial: instance.uuid,
    uuid: withoutEc2Look(instance.instanceId),
  };
  if (!instance.communication || hasSeedDisk(instance)) return plain;
  switch (datasourceDialect(instance.dialects)) {
    case 'ec2':
      return { ...plain, serial: instance.instanceId, uuid: instance.instanceId };
    case 'openstack':
      return { ...plain, product: 'OpenStack Nova' };
    case 'nocloud':
      // Taken by every release that Debian ships: 29.1 will not know `nocloud-net` any more, and
      // 22.4 runs no user data from the network with `nocloud` unless the mode is named.
      return { ...plain, serial: `ds=nocloud;s=${SERVICE_URL}/nocloud/;dsmode=net` };
    case undefined:
      return plain;
  }
}

/** A seed disk exists beside the channel only, and holds documents of the dialect nocloud. */
export function hasSeedDisk({
  communication,
  seedDisk,
  dialects,
}: Pick<InstanceRecord, 'communication' | 'seedDisk' | 'dialects'>): boolean {
  return communication && seedDisk && dialects.includes('nocloud');
}

/**
 * Whether the channel's NIC has to come before the instance's own. For EC2 and OpenStack cloud-init
 * asks by DHCP, before any network of the guest's, on one NIC alone: the first by name, and names
 * follow PCI slots (26.2 asks on the next when it has waited for the service of the first). What
 * the service says of all NICs is by MAC, so that their order is nothing to the guest thereafter.
 */
export function isChannelFirst(instance: Described): boolean {
  const { datasource } = explainDatasource(instance);
  return datasource === 'Ec2' || datasource === 'OpenStack';
}

/**
 * Returns a warning where a change puts the channel before the instance's NICs, else null. Pure.
 */
export function warnOfNicOrder(before: Described, after: Described): string | null {
  if (after.nics.length === 0 || isChannelFirst(before) || !isChannelFirst(after)) return null;
  return 'the channel comes before its NICs: a guest that numbers its interfaces (eth0) renames them. --seed-disk yes puts the channel last';
}

/**
 * Which datasource a stock cloud-init will use, in its own name, and why; for `gnt-instance info`.
 */
export function explainDatasource(instance: Described): {
  datasource: string | null;
  reason: string;
} {
  if (!instance.communication) {
    return {
      datasource: null,
      reason: 'communication is off: the guest is served nothing in normal runs',
    };
  }
  if (hasSeedDisk(instance)) {
    return {
      datasource: 'NoCloud',
      reason: 'the seed disk (label CIDATA) configures every NIC by MAC and holds the user data',
    };
  }
  switch (datasourceDialect(instance.dialects)) {
    case 'ec2':
      return instance.instanceId.startsWith('ec2')
        ? { datasource: 'Ec2', reason: 'DMI UUID and serial begin with ec2' }
        : {
            datasource: null,
            reason: 'the DMI UUID does not begin with ec2: a reinstallation creates one that does',
          };
    case 'openstack':
      return { datasource: 'OpenStack', reason: 'DMI product is OpenStack Nova' };
    case 'nocloud':
      return {
        datasource: 'NoCloud',
        reason: `DMI serial names the metadata service as seed${isBehindAnother(instance) ? `; ${BEHIND_ANOTHER}` : ''}`,
      };
    case undefined:
      return {
        datasource: null,
        reason: '--dialects names no dialect that cloud-init understands',
      };
  }
}

const BEHIND_ANOTHER =
  'the channel is not the first NIC, so a stock image finds the metadata service only if it configures all NICs by itself';

/**
 * cloud-init reads this seed over the network that it finds, and brings up one NIC to find one. The
 * channel as that one would leave the others down: 22.4 reads no network configuration by HTTP.
 */
function isBehindAnother(instance: Described): boolean {
  const { communication, dialects, nics } = instance;
  if (!communication || hasSeedDisk(instance) || nics.length === 0) return false;
  return datasourceDialect(dialects) === 'nocloud';
}

/**
 * Why a stock guest may find nothing of what the instance gives it, in words; null when it will.
 */
function unreachedService(instance: Described): string | null {
  if (!isBehindAnother(instance)) return null;
  return `${BEHIND_ANOTHER}: choose --seed-disk yes, or put ec2 or openstack first in --dialects`;
}

/**
 * EC2's and OpenStack's trees have no place for a cloud-init network configuration.
 * @throws AppError VALIDATION with the datasource's name
 */
export function refuseUnservedNetworkConfig(instance: Described): void {
  if (instance.networkConfig === null) return;
  const { datasource } = explainDatasource(instance);
  if (datasource !== 'Ec2' && datasource !== 'OpenStack') return;
  throw new AppError(
    'VALIDATION',
    `--network-config: a guest whose datasource is ${datasource} never sees it`,
    { hint: 'Use --seed-disk yes, or --dialects with nocloud first.' },
  );
}

/** What of the given addresses the guest will not hear, in words; null when it hears all. */
function unheardAddresses(instance: Described): string | null {
  const isStatic = instance.nics.some(({ network }) => (network?.addresses.length ?? 0) > 0);
  if (!isStatic) return null;
  const { datasource, reason } = explainDatasource(instance);
  if (datasource === 'NoCloud' || datasource === 'OpenStack') return null;
  return datasource === null
    ? `the guest does not learn the addresses of --net: ${reason}`
    : 'an EC2 guest asks DHCP, whatever address --net gives: use --seed-disk yes to configure the address';
}

/**
 * Why cloud-init will report no boot verdict, in words; null if it can, or if the operator has
 * turned the channel or the report off.
 */
function missingVerdict(instance: Described): string | null {
  if (!instance.communication || instance.hvparams.boot_report === 'no') return null;
  const { datasource } = explainDatasource(instance);
  const seedDisk = hasSeedDisk(instance);
  const silence = explainSilence({ ...instance, seedDisk, datasource });
  return silence && `cloud-init will report no boot verdict: ${silence.reason}. ${silence.hint}`;
}

/** What the operator should know before the guest of a new or changed instance boots. */
export function warnOfUnheard(instance: Described): readonly string[] {
  const found = [unheardAddresses, unreachedService, missingVerdict].map((one) => one(instance));
  return found.filter((text) => text !== null);
}
