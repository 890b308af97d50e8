import type { Schemas } from '../../../client/api-client.ts';
import type { Create } from '../../commands/installation-options.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
/** Default of `gnt-instance launch`. */
const DEFAULT_DISK_BYTES = 10 * GIB;

export type Visibility = 'public' | 'private' | 'secret';

export interface ParameterRow {
  readonly name: string;
  readonly value: string;
  readonly visibility: Visibility;
}

/** A NIC: by the NAT of QEMU, in a network of the cluster, or at a bridge of the node. */
export interface NicRow {
  readonly kind: 'user' | 'network' | 'bridge';
  /** Network or bridge. */
  readonly to: string;
  /**
   * An address of the network; empty: any free one. At a bridge, addresses with prefix lengths;
   * empty: DHCP.
   */
  readonly ip: string;
  /** Gateways and name servers, for static addresses at a bridge. */
  readonly gateway: string;
  readonly dns: string;
}

/** A disk after the first one. */
export interface DiskRow {
  readonly size: string;
}

export interface HookRow {
  readonly name: string;
  readonly text: string;
}

/** The typed values of the form of a creation. Empty texts mean the default. */
export interface InstallForm {
  readonly name: string;
  /** A name of the catalogues, a URL, or a path on the node. */
  readonly image: string;
  /** Size of the first disk. */
  readonly size: string;
  readonly disks: readonly DiskRow[];
  readonly memory: string;
  readonly vcpus: string;
  readonly nics: readonly NicRow[];
  readonly keys: string;
  readonly communication: boolean;
  readonly userData: string;
  readonly node: string;
  readonly diskTemplate: NonNullable<Create['diskTemplate']>;
  readonly tags: string;
  readonly osType: string;
  readonly parameters: readonly ParameterRow[];
  readonly profiles: string;
  readonly bootEnv: string;
  readonly packageSource: string;
  readonly packageChecksum: string;
  readonly packageUser: string;
  readonly packagePassword: string;
  readonly hooks: readonly HookRow[];
  readonly start: boolean;
  readonly onFailure: NonNullable<Create['onFailure']>;
}

export type FormField = keyof InstallForm;
/** The first fault of each field, as a sentence. */
export type Faults = Readonly<Partial<Record<FormField, string>>>;

export const BLANK_NIC: NicRow = { kind: 'user', to: '', ip: '', gateway: '', dns: '' };

export const EMPTY_FORM: InstallForm = {
  name: '',
  image: '',
  size: '',
  disks: [],
  memory: '',
  vcpus: '',
  nics: [BLANK_NIC],
  keys: '',
  communication: true,
  userData: '',
  node: '',
  diskTemplate: 'file',
  tags: '',
  osType: '',
  parameters: [],
  profiles: '',
  bootEnv: '',
  packageSource: '',
  packageChecksum: '',
  packageUser: '',
  packagePassword: '',
  hooks: [],
  start: true,
  onFailure: 'keep',
};

/** An image of a catalogue with its present source and checksum. */
export type Resolved = Schemas['ResolvedImage'];

/** Tells whether an image is a name of the catalogues, as `gnt-instance launch` does. Pure. */
export function isImageName(image: string): boolean {
  return /^([a-z][a-z0-9-]*:)?[a-z0-9][a-z0-9._+-]*(\/[a-z0-9][a-z0-9._+-]*){0,3}$/.test(image);
}

/** Reads a size such as `10G` or `512M`; a number without a unit is in GiB. Pure. */
export function readBytes(text: string): number | undefined {
  const found = /^(\d+(?:[.,]\d+)?)\s*(?:([mgt])(?:i?b)?)?$/i.exec(text.trim());
  if (found === null) return undefined;
  const unit = { m: MIB, g: GIB, t: 1024 * GIB }[(found[2] ?? 'g').toLowerCase()] ?? GIB;
  const bytes = Number((found[1] ?? '').replace(',', '.')) * unit;
  return bytes > 0 ? Math.ceil(bytes / MIB) * MIB : undefined;
}

export interface Defaults {
  readonly diskBytes?: number | undefined;
  readonly memoryMiB?: number | undefined;
  readonly vcpus?: number | undefined;
}

/** Returns the size of the first disk: the given one, or a default that the image fits on. Pure. */
export function chooseDiskBytes(
  size: string,
  defaults: Defaults,
  leastBytes: number | null | undefined,
): number | undefined {
  if (size.trim() !== '') return readBytes(size);
  const usual = defaults.diskBytes ?? DEFAULT_DISK_BYTES;
  return Math.ceil(Math.max(usual, leastBytes ?? 0) / MIB) * MIB;
}

/** Returns faults that the page finds without the node. Pure. */
export function findFaults(form: InstallForm, image: Resolved | undefined): Faults {
  const least = image?.minDiskBytes ?? null;
  const size = form.size.trim() === '' ? undefined : readBytes(form.size);
  const vcpus = form.vcpus.trim();
  return withoutUndefined({
    name: form.name.trim() === '' ? 'Give the instance a name, such as web1.' : undefined,
    image: isSourceless(form) ? 'Choose an image, or an OS definition below.' : undefined,
    size:
      form.size.trim() !== '' && size === undefined
        ? 'Write a size such as 20G.'
        : size !== undefined && least !== null && size < least
          ? `The image requires at least ${Math.ceil(least / MIB)}M.`
          : undefined,
    disks: form.disks.some((disk) => readBytes(disk.size) === undefined)
      ? 'Each disk needs a size such as 20G.'
      : undefined,
    memory:
      form.memory.trim() !== '' && readBytes(form.memory) === undefined
        ? 'Write a size such as 2G.'
        : undefined,
    vcpus:
      vcpus !== '' && !/^[1-9]\d{0,2}$/.test(vcpus) ? 'Write a number from 1 to 255.' : undefined,
    nics: faultOfNics(form.nics),
    keys: /^-----BEGIN .*PRIVATE KEY-----/m.test(form.keys)
      ? 'This is a private key. Paste the public key (.pub).'
      : undefined,
    ...faultsOfInstallation(form),
  });
}

/** Returns faults of the fields that a reinstallation has too. Pure. */
export function faultsOfInstallation(
  form: Pick<InstallForm, 'parameters' | 'hooks' | 'packageUser' | 'packagePassword'>,
): Faults {
  const names = form.parameters.map(({ name }) => name.trim()).filter((name) => name !== '');
  const twice = names.find((name, at) => names.indexOf(name) < at);
  const isUnnamed = form.parameters.some(({ name, value }) => name.trim() === '' && value !== '');
  return withoutUndefined({
    parameters: isUnnamed
      ? 'A value has no name.'
      : twice === undefined
        ? undefined
        : `${twice} occurs twice.`,
    hooks: form.hooks.some(({ name, text }) => name.trim() === '' && text.trim() !== '')
      ? 'A document has no file name.'
      : undefined,
    packagePassword:
      form.packageUser.trim() !== '' && form.packagePassword === ''
        ? 'The user needs a password.'
        : undefined,
  });
}

function isSourceless({ image, osType, bootEnv }: InstallForm): boolean {
  return [image, osType, bootEnv].every((text) => text.trim() === '');
}

function faultOfNics(nics: readonly NicRow[]): string | undefined {
  const index = nics.findIndex(({ kind, to }) => kind !== 'user' && to.trim() === '');
  if (index === -1) return undefined;
  const what = nics[index]?.kind === 'network' ? 'network' : 'bridge';
  return `NIC ${index} has no ${what}.`;
}

/** Returns the creation of a form without faults. Pure. */
export function toCreate(form: InstallForm, defaults: Defaults, image?: Resolved): Create {
  const { diskTemplate, node, onFailure } = form;
  const diskBytes = chooseDiskBytes(form.size, defaults, image?.minDiskBytes);
  const more = form.disks.map((disk) => readBytes(disk.size));
  const memory = readBytes(form.memory);
  const memoryMiB = memory === undefined ? defaults.memoryMiB : memory / MIB;
  const vcpus = form.vcpus.trim() === '' ? defaults.vcpus : Number(form.vcpus);
  const keys = linesOf(form.keys);
  const tags = wordsOf(form.tags);
  return {
    opcode: 'INSTANCE_CREATE',
    name: form.name.trim(),
    ...toInstallation(form, image),
    communication: form.communication,
    ...(form.userData.trim() !== '' && { userData: toBase64(form.userData) }),
    ...(keys.length > 0 && { sshKeys: keys }),
    ...(tags.length > 0 && { tags }),
    ...(diskTemplate !== 'file' && { diskTemplate }),
    disks: diskTemplate === 'diskless' ? [] : [diskBytes, ...more].flatMap(toDisk),
    nics: form.nics.map(toNic),
    beparams: { ...(memoryMiB && { memoryMiB }), ...(vcpus && { vcpus }) },
    ...(node !== '' && { node }),
    ...(onFailure !== 'keep' && { onFailure }),
  };
}

function toDisk(sizeBytes: number | undefined): NonNullable<Create['disks']> {
  return sizeBytes === undefined ? [] : [{ sizeBytes }];
}

function toNic({ kind, to, ip, gateway, dns }: NicRow): NonNullable<Create['nics']>[number] {
  if (kind === 'user') return { mode: 'user' };
  const addresses = wordsOf(ip);
  if (kind === 'bridge' && addresses.length === 0) return { link: to.trim() };
  if (kind === 'bridge') {
    const network = { addresses, gateways: wordsOf(gateway), nameservers: wordsOf(dns) };
    return { link: to.trim(), network };
  }
  return { networkName: to.trim(), ip: ip.trim() || 'pool' };
}

type Installation = Pick<
  InstallForm,
  | 'osType'
  | 'parameters'
  | 'profiles'
  | 'bootEnv'
  | 'packageSource'
  | 'packageChecksum'
  | 'packageUser'
  | 'packagePassword'
  | 'hooks'
  | 'image'
  | 'start'
>;
type Common = Omit<Create, 'opcode' | 'name'>;

/** Returns the parts that creations and reinstallations share. Pure. */
export function toInstallation(form: Installation, image?: Resolved): Common {
  const of = (wanted: Visibility): Record<string, string> =>
    Object.fromEntries(
      form.parameters.flatMap(({ name, value, visibility }) =>
        visibility === wanted && name.trim() !== '' ? [[name.trim(), value]] : [],
      ),
    );
  const source = image?.source ?? form.image.trim();
  const profiles = wordsOf(form.profiles);
  const hooks = form.hooks.filter(({ name }) => name.trim() !== '');
  return {
    ...(form.osType !== '' && { osType: form.osType }),
    ...(source !== '' && { osImage: source }),
    ...(image !== undefined && { osImageChecksum: image.checksum }),
    osParameters: of('public'),
    osParametersPrivate: of('private'),
    osParametersSecret: of('secret'),
    ...(profiles.length > 0 && { profiles }),
    ...(form.bootEnv !== '' && { bootEnv: form.bootEnv }),
    ...(form.packageSource.trim() !== '' && { personalizationPackage: form.packageSource.trim() }),
    ...(form.packageChecksum.trim() !== '' && {
      personalizationChecksum: form.packageChecksum.trim(),
    }),
    ...(form.packageUser.trim() !== '' && {
      personalizationUser: form.packageUser.trim(),
      personalizationPassword: form.packagePassword,
    }),
    ...(hooks.length > 0 && {
      hooks: hooks.map(({ name, text }) => ({ name: name.trim(), content: toBase64(text) })),
    }),
    ...(!form.start && { start: false }),
  };
}

/** Returns words that are separated by spaces or commas. */
function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

function toBase64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  // Documents of a megabyte have more bytes than a call may have arguments.
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

function withoutUndefined(faults: Partial<Record<FormField, string | undefined>>): Faults {
  const given = Object.entries(faults).filter(([, fault]) => fault !== undefined);
  // The entries have the same keys.
  return Object.fromEntries(given);
}
