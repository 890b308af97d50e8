/** What zod says of one field of an opcode. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Options whose name is not that of their field in kebab case. */
const OPTIONS: Readonly<Record<string, string>> = {
  name: 'name',
  newName: 'new name',
  disks: '--disk',
  nics: '--net',
  beparams: '-B',
  hvparams: '-H',
  sshKeys: '--ssh-key',
  safeInstall: '--enable-safe-install',
  installTimeoutS: '--install-timeout',
  maxImageBytes: '--max-image-size',
  downloadTimeoutS: '--download-timeout',
  exposeServices: '--expose-service',
  packageMirrors: '--package-mirror',
  remoteFolders: '--remote-folders',
  shutdownTimeoutS: '--shutdown-timeout',
  timeoutS: '--timeout',
  kind: '--type',
  diskTemplate: '--disk-template',
};

/**
 * Fields whose values, and what stands below them, may be secret or hold a password (as URLs do).
 */
const WITHHELD = new Set([
  'osParameters',
  'osParametersPrivate',
  'osParametersSecret',
  'personalizationPassword',
  'personalizationPackage',
  'osImage',
  'hooks',
  'userData',
  'vendorData',
  'networkConfig',
  'packageMirrors',
  'sshKeys',
]);
/** Of these even a key may be a secret that was given without its name. */
const KEYS_WITHHELD = new Set(['osParametersPrivate', 'osParametersSecret']);
const MAX_VALUE_CHARACTERS = 100;

/**
 * `--os-image-checksum: 'md5:00': expected sha256:HEX or sha512:HEX`: the option, the value where
 * it may be shown, and what is wrong.
 */
export function describeIssue(issue: Issue, input: unknown): string {
  const [field = '', ...rest] = issue.path.map(String);
  const option =
    OPTIONS[field] ?? `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const below = KEYS_WITHHELD.has(field) ? [] : rest;
  const value = WITHHELD.has(field) ? undefined : valueAt(input, issue.path);
  const isShown = typeof value === 'string' || typeof value === 'number';
  return [
    [option, ...below].join(' '),
    ...(isShown ? [`'${String(value).slice(0, MAX_VALUE_CHARACTERS)}'`] : []),
    issue.message,
  ].join(': ');
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    // An object that has the key, as was just seen.
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
