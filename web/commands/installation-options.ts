import type { Schemas } from '../../client/api-client.ts';
import { type CommandWords, escapeElement, formatSize, yesOrNo } from './command-words.ts';

type OpcodeOf<Name extends Schemas['Opcode']['opcode']> = Extract<
  Schemas['Opcode'],
  { readonly opcode: Name }
>;
export type Create = OpcodeOf<'INSTANCE_CREATE'>;
export type Reinstall = OpcodeOf<'INSTANCE_REINSTALL'>;

type Writer<Value> = (words: CommandWords, value: NonNullable<Value>) => unknown;
/** A field without a writer does not compile. */
type Writers<Opcode> = {
  readonly [Key in Exclude<keyof Opcode, 'opcode' | 'name' | 'personalizationPassword'>]-?: Writer<
    Opcode[Key]
  >;
};

const installation = {
  osType: (words, os) => words.option('--os-type', os),
  forceVariant: (words, is) => is && words.flag('--force-variant'),
  osImage: (words, image) => words.value('--os-image', image),
  osImageChecksum: (words, sum) => words.value('--os-image-checksum', sum),
  osImageGrow: (words, is) => words.option('--os-image-grow', yesOrNo(is)),
  osImageFormat: (words, format) => words.option('--image-format', format),
  personalizationPackage: (words, url) => words.value('--personalization-package', url),
  personalizationChecksum: (words, sum) => words.value('--personalization-checksum', sum),
  personalizationUser: (words, user) => words.value('--personalization-user', user),
  safeInstall: (words, is) => words.option('--enable-safe-install', yesOrNo(is)),
  installParameters: (words, list) => words.list('--install-parameters', textsOf(list)),
  mediumSuccess: (words, value) => words.option('--medium-success', value),
  appliance: (words, name) => words.option('--appliance', name),
  hooks: (words, files) => {
    for (const { name, content } of files)
      words.file('--hooks', { name, holds: 'hooks', content: bytesOf(content) });
  },
  osParameters: (words, list) => words.list('--os-parameters', list),
  osParametersPrivate: (words, list) => words.list('--os-parameters-private', list, '', true),
  osParametersSecret: (words, list) => words.list('--os-parameters-secret', list, '', true),
  bootEnv: (words, name) => words.option('--bootenv', name),
  profiles: (words, names) => words.option('--profiles', names.join(',') || 'none'),
  start: (words, is) => is || words.flag('--no-start'),
  installTimeoutS: (words, seconds) => words.option('--install-timeout', String(seconds)),
} satisfies Partial<Writers<Create>> & Partial<Writers<Reinstall>>;

const creation: Writers<Create> = {
  ...installation,
  diskTemplate: (words, template) =>
    template !== 'file' && words.option('--disk-template', template),
  disks: writeDisks,
  nics: (words, nics) => {
    for (const [index, nic] of nics.entries()) writeNic(words, index, nic);
  },
  beparams: (words, { memoryMiB, vcpus }) =>
    words.list('--backend-parameters', {
      ...(memoryMiB !== undefined && { memory: formatSize(memoryMiB * 1024 * 1024) }),
      ...(vcpus !== undefined && { vcpus: String(vcpus) }),
    }),
  hvparams: (words, list) => words.list('--hypervisor-parameters', textsOf(list)),
  node: (words, node) => words.option('--node', node),
  communication: (words, is) => words.option('--communication', yesOrNo(is)),
  userData: (words, content) => writeDocument(words, 'user-data', content),
  vendorData: (words, content) => writeDocument(words, 'vendor-data', content),
  networkConfig: (words, content) => writeDocument(words, 'network-config', content),
  sshKeys: (words, keys) => {
    const content = new TextEncoder().encode(`${keys.join('\n')}\n`);
    if (keys.length > 0)
      words.file('--ssh-key', { name: 'keys.pub', holds: 'public keys', content });
  },
  metadata: (words, list) => words.list('--metadata', list),
  seedDisk: (words, is) => words.option('--seed-disk', yesOrNo(is)),
  dialects: (words, dialects) => words.option('--dialects', dialects.join(',')),
  metadataToken: (words, policy) =>
    policy !== 'optional' && words.option('--metadata-token', policy),
  tags: (words, tags) =>
    tags.length > 0 && words.option('--tags', tags.map(escapeElement).join(',')),
  autostart: writeAutostart,
  install: (words, is) => is || words.flag('--no-install'),
  onFailure: (words, what) => words.option('--on-failure', what),
  runLists: (words) => words.lacks('run lists'),
  importFrom: (words) => words.lacks('the export; see gnt-backup import'),
};

const reinstallation: Writers<Reinstall> = {
  ...installation,
  keepOld: (words, is) => words.flag(is ? '--keep-old' : '--no-keep-old'),
  shutdownTimeoutS: (words, seconds) => words.option('--shutdown-timeout', String(seconds)),
};

/** Options whose value `none` unsets the stored value. */
const UNSETTABLE: Readonly<Record<string, string>> = {
  osType: '--os-type',
  osImage: '--os-image',
  osImageChecksum: '--os-image-checksum',
  personalizationPackage: '--personalization-package',
  personalizationChecksum: '--personalization-checksum',
  appliance: '--appliance',
  bootEnv: '--bootenv',
};

/** Adds the options of a creation. */
export function writeCreate(words: CommandWords, opcode: Create): CommandWords {
  write(words, creation, opcode);
  return writePassword(words, opcode).names(opcode.name);
}

/** Adds the options of a reinstallation. */
export function writeReinstall(words: CommandWords, opcode: Reinstall): CommandWords {
  write(words, reinstallation, opcode);
  return writePassword(words, opcode).names(opcode.name);
}

function write(words: CommandWords, writers: object, opcode: object): void {
  const values = new Map<string, unknown>(Object.entries(opcode));
  for (const [key, writer] of Object.entries(writers) as [string, Writer<unknown>][]) {
    const value = values.get(key);
    const option = UNSETTABLE[key];
    if (value === null && option !== undefined) words.option(option, 'none');
    else if (value !== undefined && value !== null) writer(words, value);
  }
}

function writePassword(
  words: CommandWords,
  { personalizationPassword: password }: Create | Reinstall,
): CommandWords {
  if (password === undefined) return words;
  const content = new TextEncoder().encode(`${password}\n`);
  const file = { name: 'package-password.txt', holds: 'password of the package', content };
  return words.file('--personalization-password', file, '@');
}

function writeDisks(words: CommandWords, disks: NonNullable<Create['disks']>): void {
  const [first, ...more] = disks;
  if (first !== undefined && more.length === 0 && first.name === undefined) {
    words.option('--os-size', formatSize(first.sizeBytes));
    return;
  }
  for (const [index, { sizeBytes, name }] of disks.entries())
    words.list('--disk', { size: formatSize(sizeBytes), ...(name && { name }) }, `${index}:`);
}

function writeNic(
  words: CommandWords,
  index: number,
  { networkName, network, ip, mac, ...nic }: NonNullable<Create['nics']>[number],
): void {
  const {
    addresses = [],
    gateways = [],
    nameservers = [],
    search = [],
    routes = [],
    mtu,
  } = network ?? {};
  const via = routes.map((route) => `${route.to}@${route.via}`);
  const lists = { ip: addresses, gateway: gateways, dns: nameservers, search, routes: via };
  const texts = Object.entries(lists).flatMap(([key, items]) =>
    items.length === 0 ? [] : [[key, items.join(';')] as const],
  );
  const values = {
    ...(networkName && { network: networkName }),
    ...(ip && addresses.length === 0 && { ip }),
    ...(mac && mac !== 'auto' && { mac }),
    ...nic,
    ...Object.fromEntries(texts),
    ...(mtu != null && { mtu: String(mtu) }),
  };
  if (Object.keys(values).length === 0) words.option('--net', `${index}`);
  else words.list('--net', values, `${index}:`);
}

function writeAutostart(words: CommandWords, autostart: NonNullable<Create['autostart']>): void {
  const { boot, priority, delayS, restarts, lostSecrets } = autostart;
  const elements = [
    ...(boot === undefined ? [] : [yesOrNo(boot)]),
    ...(priority === undefined ? [] : [`priority=${priority}`]),
    ...(delayS === undefined ? [] : [`delay=${delayS}`]),
    ...(restarts === undefined ? [] : [`restarts=${restarts}`]),
    ...(lostSecrets === undefined ? [] : [`lost_secrets=${lostSecrets}`]),
  ];
  if (elements.length > 0) words.option('--autostart', elements.join(','));
}

function writeDocument(words: CommandWords, kind: string, content: string): void {
  words.file(`--${kind}`, {
    name: `${kind}.txt`,
    holds: kind.replace('-', ' '),
    content: bytesOf(content),
  });
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function textsOf(
  list: Readonly<Record<string, string | number | null | undefined>>,
): Record<string, string | null> {
  const given = Object.entries(list).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([key, value]) => [key, value === null ? null : String(value)]),
  );
}
