import { explainSilence } from '#shared/contract/boot-silence.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Dialect } from '#shared/contract/primitives.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * The DMI strings that a stock cloud-init reads before it has a network. Its ds-identify also reads
 * file system labels.
 */
export interface Smbios {
  readonly manufacturer: string;
  readonly product: string;
  readonly serial: string;
  readonly uuid: string;
}

/** The fields that decide a guest's datasource. */
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

/**
 * Returns the dialect that SMBIOS announces to a stock cloud-init: the first known one of the list.
 */
export function datasourceDialect(
  dialects: readonly Dialect[],
): Exclude<Dialect, 'ganeti'> | undefined {
  return dialects.find((name) => name !== 'ganeti');
}

/**
 * Returns a UUID that cloud-init does not take for Amazon's. Since 25.1 ds-identify only checks
 * that it begins with `ec2`, in either byte order, as about one random UUID in 2,048 does. Such a
 * guest without a channel asks 169.254.169.254 for four minutes, twice, whatever host has that
 * address.
 */
export function withoutEc2Look(uuid: string): string {
  return uuid.replace(/^ec2/i, '0c2').replace(/^(.{4}2.)ec/i, '$10c');
}

/**
 * Returns the SMBIOS strings of an instance, which decide a stock cloud-init's datasource. With a
 * seed disk or without the channel they announce none.
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
    case 'gce':
      return {
        manufacturer: 'Google',
        product: 'Google Compute Engine',
        serial: `GoogleCloud-${instance.uuid.replaceAll('-', '')}`,
        uuid: plain.uuid,
      };
    case 'nocloud':
      // Every release in Debian accepts this form. 29.1 drops `nocloud-net`, and 22.4 runs no user
      // data from the network with `nocloud` unless the mode is given.
      return { ...plain, serial: `ds=nocloud;s=${SERVICE_URL}/nocloud/;dsmode=net` };
    case undefined:
      return plain;
  }
}

/** Returns true if the instance has a seed disk: only with the channel and the dialect nocloud. */
export function hasSeedDisk({
  communication,
  seedDisk,
  dialects,
}: Pick<InstanceRecord, 'communication' | 'seedDisk' | 'dialects'>): boolean {
  return communication && seedDisk && dialects.includes('nocloud');
}

/** Datasources that use DHCP on one NIC before the guest's network is up. */
const CLOUDS = ['Ec2', 'OpenStack', 'GCE'];

/**
 * Returns true if the channel's NIC must precede the instance's own. For EC2, OpenStack and
 * GCE, cloud-init uses DHCP before the guest's network is up, on one NIC: the first by name. Names
 * follow PCI slots. 26.2 tries the next NIC after it has waited for the service on the first. The
 * metadata identifies NICs by MAC, so their order does not matter later.
 */
export function isChannelFirst(instance: Described): boolean {
  const { datasource } = explainDatasource(instance);
  return CLOUDS.some((cloud) => cloud === datasource);
}

/** Returns a warning if a change puts the channel before the instance's NICs, else null. Pure. */
export function warnOfNicOrder(before: Described, after: Described): string | null {
  if (after.nics.length === 0 || isChannelFirst(before) || !isChannelFirst(after)) return null;
  return 'the channel comes before its NICs: a guest that numbers its interfaces (eth0) renames them. --seed-disk yes puts the channel last';
}

/**
 * Returns the datasource of a stock cloud-init, by its own name, and the reason; for `gnt-instance
 * info`.
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
            reason: 'the DMI UUID does not begin with ec2; a reinstallation creates a new UUID',
          };
    case 'gce':
      return { datasource: 'GCE', reason: 'DMI product is Google Compute Engine' };
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
 * Returns true if the channel comes after another NIC. To read a seed over HTTP, cloud-init brings
 * up one NIC. With the channel as that NIC the others would stay down: 22.4 reads no network
 * configuration by HTTP.
 */
function isBehindAnother(instance: Described): boolean {
  const { communication, dialects, nics } = instance;
  if (!communication || hasSeedDisk(instance) || nics.length === 0) return false;
  return datasourceDialect(dialects) === 'nocloud';
}

/** Returns why a stock guest may not find the metadata service, in words; null if it will. */
function unreachedService(instance: Described): string | null {
  if (!isBehindAnother(instance)) return null;
  return `${BEHIND_ANOTHER}: choose --seed-disk yes, or put ec2 or openstack first in --dialects`;
}

/**
 * Refuses a cloud-init network configuration for clouds whose trees have no place for
 * it.
 * @throws AppError VALIDATION with the datasource's name
 */
export function refuseUnservedNetworkConfig(instance: Described): void {
  if (instance.networkConfig === null) return;
  const { datasource } = explainDatasource(instance);
  if (!CLOUDS.some((cloud) => cloud === datasource)) return;
  throw new AppError(
    'VALIDATION',
    `--network-config: a guest whose datasource is ${datasource} never sees it`,
    { hint: 'Use --seed-disk yes, or --dialects with nocloud first.' },
  );
}

/** Returns which static addresses the guest will not receive, in words; null if it receives all. */
function unheardAddresses(instance: Described): string | null {
  const isStatic = instance.nics.some(({ network }) => (network?.addresses.length ?? 0) > 0);
  if (!isStatic) return null;
  const { datasource, reason } = explainDatasource(instance);
  if (datasource === 'NoCloud' || datasource === 'OpenStack') return null;
  return datasource === null
    ? `the guest does not learn the addresses of --net: ${reason}`
    : `a guest with the datasource ${datasource} asks DHCP, whatever address --net gives: use --seed-disk yes to configure the address`;
}

/**
 * Returns why cloud-init will report no boot verdict, in words; null if it can, or if the operator
 * turned the channel or the report off.
 */
function missingVerdict(instance: Described): string | null {
  if (!instance.communication || instance.hvparams.boot_report === 'no') return null;
  const { datasource } = explainDatasource(instance);
  const seedDisk = hasSeedDisk(instance);
  const silence = explainSilence({ ...instance, seedDisk, datasource });
  return silence && `cloud-init will report no boot verdict: ${silence.reason}. ${silence.hint}`;
}

/** Returns warnings for the operator before the guest of a new or changed instance boots. */
export function warnOfUnheard(instance: Described): readonly string[] {
  const found = [unheardAddresses, unreachedService, missingVerdict].map((one) => one(instance));
  return found.filter((text) => text !== null);
}
