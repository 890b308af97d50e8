import type { Quota, Scope } from '#shared/contract/submitter.ts';
import { MIB } from '#shared/units/bytes.ts';
import { readSizeMiB } from '#shared/units/parse-size.ts';

/** `write` includes reading. */
export type Role = 'read' | 'write';

export interface UserOptions {
  readonly role: Role;
  /** Instances that the user is bound to; null: all, and the cluster. */
  readonly scope: Scope | null;
}

export const UNKNOWN_OPTION =
  'The options are read, write, tag:TAG, instance:PATTERN, link:PATTERN, max-instances:N, max-memory:SIZE, max-vcpus:N and max-disk:SIZE.';
const MAX_OPTIONS = 100;
const LISTS = ['tag', 'instance', 'link'] as const;
const QUOTAS = ['max-instances', 'max-memory', 'max-vcpus', 'max-disk'] as const;

/**
 * Parses the options of a user: `read` and `write` as in Ganeti; `tag:` and `instance:` bind the
 * user to instances; `link:` and `max-…:` need one of these. Pure.
 * @returns undefined if an option is unknown: a misspelt limit must not be none
 */
export function parseUserOptions(given: readonly string[]): UserOptions | undefined {
  if (given.length > MAX_OPTIONS) return undefined;
  const pairs = given.map((option) => /^([a-z-]+):(.+)$/.exec(option)?.slice(1, 3) ?? [option, '']);
  const of = (key: string): readonly string[] =>
    pairs.flatMap(([name, value = '']) => (name === key && value !== '' ? [value] : []));
  const known = [...LISTS, ...QUOTAS].reduce((sum, key) => sum + of(key).length, 0);
  const roles = given.filter((option) => option === 'read' || option === 'write');
  if (known + roles.length !== given.length) return undefined;
  const quota = parseQuota(of);
  if (quota === undefined) return undefined;
  const [tags, names, links] = [of('tag'), of('instance'), of('link')];
  const role = roles.includes('write') ? 'write' : 'read';
  const limits = {
    ...(links.length > 0 && { links: [...links] }),
    ...(Object.keys(quota).length > 0 && { quota }),
  };
  if (tags.length + names.length > 0)
    return { role, scope: { tags: [...tags], names: [...names], ...limits } };
  // A user with limits alone would be bound by nothing.
  return Object.keys(limits).length > 0 ? undefined : { role, scope: null };
}

/** @returns undefined if a value is not a number or size, or if an option is repeated */
function parseQuota(of: (key: string) => readonly string[]): Quota | undefined {
  const [instances, memory, vcpus, disk] = QUOTAS.map(of);
  const values = {
    instances: readOne(instances, readCount),
    memoryMiB: readOne(memory, readSizeMiB),
    vcpus: readOne(vcpus, readCount),
    diskBytes: readOne(disk, (text) => multiply(readSizeMiB(text), MIB)),
  };
  const entries = Object.entries(values).filter(([, value]) => value !== null);
  if (entries.some(([, value]) => value === undefined)) return undefined;
  return Object.fromEntries(entries);
}

/** @returns null without the option, undefined for a value that cannot be read */
function readOne(
  given: readonly string[] | undefined = [],
  read: (text: string) => number | undefined,
): number | null | undefined {
  const [text, ...more] = given;
  if (text === undefined) return null;
  return more.length > 0 ? undefined : read(text);
}

function readCount(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function multiply(count: number | undefined, unit: number): number | undefined {
  return count === undefined ? undefined : count * unit;
}
