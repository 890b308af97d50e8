import { awsKeys, googleKeys } from '#shared/contract/cloud-keys.ts';
import type { IdentityChanges, IdentitySettings } from '#shared/contract/identity.ts';
import type { KeyTable } from '#shared/contract/parameter-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { OutlineEntry } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { parseKeyValues } from '../../values/key-values.ts';
import { readKnown } from '../instance/parse-options.ts';
import { isUnset } from '../instance/parse-documents.ts';

interface CloudOption {
  readonly name: string;
  readonly keys: KeyTable;
  /** Key without which there are no credentials. */
  readonly needed: string;
  /** Key of the role; `KEY:PROFILE` is the role of a profile. */
  readonly role: string;
}

const AWS = { name: '--identity-aws', keys: awsKeys, needed: 'sts', role: 'role' } as const;
const GOOGLE = {
  name: '--identity-google',
  keys: googleKeys,
  needed: 'provider',
  role: 'account',
} as const;
type Given = Pick<Context, 'values' | 'warn'>;

/** Parses `sts=URL,role=ARN,role:PROFILE=ARN,…`; null for `none`. @throws AppError USAGE */
export function parseAws(text: string, context: Given): IdentityChanges['aws'] {
  const given = parse(AWS, text, context);
  if (given === null) return null;
  const { needed, values, roles } = given;
  return { ...values, sts: needed, ...(roles && { roles }) };
}

/** Parses `provider=NAME,account=EMAIL,account:PROFILE=EMAIL,…`, as `parseAws`. */
export function parseGoogle(text: string, context: Given): IdentityChanges['google'] {
  const given = parse(GOOGLE, text, context);
  if (given === null) return null;
  const { needed, values, roles } = given;
  return { ...values, provider: needed, ...(roles && { accounts: roles }) };
}

function parse(
  option: CloudOption,
  text: string,
  context: Given,
): {
  readonly needed: string;
  readonly values: Readonly<Record<string, string>>;
  readonly roles: Readonly<Record<string, string>> | undefined;
} | null {
  if (isUnset(option.name, text, context)) return null;
  const pairs = parseKeyValues(option.name, text);
  const prefix = `${option.role}:`;
  const ofProfiles = pairs.map(({ key }) => key).filter((key) => key.startsWith(prefix));
  const read = readKnown(
    option.name,
    pairs,
    [...Object.keys(option.keys), ...ofProfiles],
    context.values,
  );
  const given = [...read].flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const],
  );
  const roles = given.filter(([key]) => ofProfiles.includes(key));
  const { [option.needed]: needed, ...values } = Object.fromEntries(
    given.filter(([key]) => !ofProfiles.includes(key)),
  );
  if (needed === undefined)
    throw new AppError('USAGE', `option ${option.name}: ${option.needed} is missing`, {
      hint: `Write ${option.name} ${option.needed}=…; the option replaces all former keys. See ${option.name} help`,
    });
  return {
    ...{ needed, values },
    roles:
      roles.length === 0
        ? undefined
        : Object.fromEntries(roles.map(([key, role]) => [key.slice(prefix.length), role])),
  };
}

/** Returns the lines of `info`. */
export function describeClouds({ aws, google }: IdentitySettings): readonly OutlineEntry[] {
  const { roles = {}, ...awsRest } = aws ?? {};
  const { accounts = {}, ...googleRest } = google ?? {};
  return [
    describe('AWS', aws && { ...awsRest, ...named('role', roles) }),
    describe('Google', google && { ...googleRest, ...named('account', accounts) }),
  ];
}

function describe(
  key: string,
  values: Readonly<Record<string, string | undefined>> | undefined,
): OutlineEntry {
  if (values === undefined) return { key, value: 'none' };
  const children = Object.entries(values).map(([name, value]) => ({
    key: name,
    value: value ?? '',
  }));
  return { key, children };
}

function named(role: string, roles: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(roles).map(([profile, value]) => [`${role}:${profile}`, value]),
  );
}
