import type { z } from 'zod';
import { MIB } from '#shared/units/bytes.ts';
import type { UnusablePart } from '#shared/contract/unusable-text.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { plainText } from '#shared/text/plain-text.ts';
import { formatBytes } from '../render/format.ts';

/** zod's issue with one field of an opcode. */
export type Issue = z.core.$ZodIssue;

/** Options whose name is not their field in kebab case. */
const OPTIONS: Readonly<Record<string, string>> = {
  name: 'name',
  newName: 'new name',
  snapshot: 'snapshot',
  disks: '--disk',
  nics: '--net',
  memoryMiB: 'memory',
  sizeBytes: 'size',
  beparams: '-B',
  hvparams: '-H',
  sshKeys: '--ssh-key',
  safeInstall: '--enable-safe-install',
  installTimeoutS: '--install-timeout',
  maxImageBytes: '--max-image-size',
  downloadTimeoutS: '--download-timeout',
  exposeServices: '--expose-service',
  packageMirrors: '--package-mirror',
  relays: '--relay',
  remoteFolders: '--remote-folders',
  remoteHosts: '--remote-hosts',
  confineGuests: '--confine-guests',
  guestNetworks: '--guest-networks',
  sharedFileStorageDir: '--shared-file-storage-dir',
  vgName: '--vg-name',
  zfsPool: '--zfs-pool',
  lowSpacePercent: '--low-space',
  shutdownTimeoutS: '--shutdown-timeout',
  timeoutS: '--timeout',
  kind: '--type',
  addTags: 'tag',
  removeTags: 'tag',
  diskTemplate: '--disk-template',
};

/** Fields whose values, at any depth, may be secret or contain a password (as URLs do). */
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
  'relays',
  'sshKeys',
]);
/** Fields whose keys may be secrets too, if the operator forgot the name. */
const KEYS_WITHHELD = new Set(['osParametersPrivate', 'osParametersSecret']);
/** Keys of changes to NICs and disks that no operator wrote. */
const OF_CHANGES = new Set(['changes', 'nic', 'disk', 'network']);
const MAX_VALUE_CHARACTERS = 100;

/**
 * Returns the option, the value if it may be shown, and the problem: `--os-image-checksum:
 * 'md5:00': expected sha256:HEX or sha512:HEX`.
 */
export function describeIssue(issue: Issue, input: unknown): string {
  const [field = ''] = issue.path.map(String);
  const value = WITHHELD.has(field) ? undefined : valueAt(input, issue.path);
  const isShown = typeof value === 'string' || typeof value === 'number';
  // The value identifies the list item.
  const last = isShown && typeof issue.path.at(-1) === 'number' ? -1 : undefined;
  return [
    namePath(issue.path.slice(0, last)).join(' '),
    ...(isShown ? [`'${inUnit(value, issue.path).slice(0, MAX_VALUE_CHARACTERS)}'`] : []),
    splitReason(issue).reason,
  ].join(': ');
}

/** Returns the option, and the keys below it that may be shown. */
function namePath(path: readonly PropertyKey[]): readonly string[] {
  const [field = '', ...rest] = withIdentityOption(path.map(String));
  const option = ownValue(OPTIONS, field) ?? `--${inKebabCase(field)}`;
  const named = KEYS_WITHHELD.has(field) ? [] : rest;
  const below = named
    .filter((key) => !OF_CHANGES.has(key))
    .map((key) => ownValue(OPTIONS, key) ?? key);
  return [option, ...below];
}

/** Each setting of identities has its own option, such as `--identity-aws`. */
function withIdentityOption(path: readonly string[]): readonly string[] {
  const [field, key = 'policy', ...rest] = path;
  if (field !== 'identity') return path;
  return [key === 'policy' ? field : `identity-${inKebabCase(key)}`, ...rest];
}

function inKebabCase(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns the same as `describeIssue`, without the value. */
export function describeUnusable({ path, problem }: UnusablePart): string {
  const [option, ...below] = namePath(path);
  const shown = [option, ...below.map(plainText)].join(' ');
  return `${shown}: ${problem}`;
}

/** Returns the correction as a hint; undefined if the reason already has it. */
export function nextStepOf(issue: Issue): string | undefined {
  const isNumber =
    (issue.code === 'too_small' || issue.code === 'too_big') && issue.origin !== 'string';
  if (!isNumber && issue.code !== 'invalid_value') return splitReason(issue).step;
  if (issue.code === 'invalid_value') return `Write ${issue.values.map(String).join(' or ')}`;
  return issue.code === 'too_small'
    ? `Write ${inUnit(issue.minimum, issue.path)} or more`
    : `Write ${inUnit(issue.maximum, issue.path)} or less`;
}

/**
 * Splits the schema's message into reason and hint: the hint follows a colon, or is the expected
 * form.
 */
function splitReason(issue: Issue): { readonly reason: string; readonly step?: string } {
  const reason = reasonOf(issue);
  const [, before, step] = /^(.*): ((?:use|write|give) .*)$/s.exec(reason) ?? [];
  if (before !== undefined && step !== undefined)
    return { reason: before, step: `${step[0]?.toUpperCase()}${step.slice(1)}` };
  const [, expected] = /^expected (.*)$/s.exec(reason) ?? [];
  return expected === undefined ? { reason } : { reason, step: `Write ${expected}` };
}

/** Formats a size in the unit of its field, and other values as text. */
function inUnit(value: unknown, path: readonly PropertyKey[]): string {
  const field = String(path.at(-1));
  const bytes = field.endsWith('MiB') ? MIB : field.endsWith('Bytes') ? 1 : 0;
  if (bytes === 0 || (typeof value !== 'number' && typeof value !== 'bigint')) return String(value);
  return formatBytes(Number(value) * bytes);
}

/**
 * Returns the schema's own message if it has one. zod's messages are about types, which operators
 * do not know.
 */
function reasonOf(issue: Issue): string {
  if (issue.code === 'too_small')
    return issue.origin === 'string'
      ? 'is empty'
      : `must be at least ${inUnit(issue.minimum, issue.path)}`;
  if (issue.code === 'too_big')
    return issue.origin === 'string'
      ? `has more than ${String(issue.maximum)} characters`
      : `must be at most ${inUnit(issue.maximum, issue.path)}`;
  if (issue.code === 'invalid_value')
    return `must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'unrecognized_keys') return `unknown key ${issue.keys.join(', ')}`;
  const isNumber = issue.code === 'invalid_type' && /^(number|int)$/.test(issue.expected);
  return isNumber ? 'must be a whole number' : issue.message;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
