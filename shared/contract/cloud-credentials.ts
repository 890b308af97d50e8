import { z } from 'zod';
import { ownValue } from '../json/own-value.ts';
import { audience } from './primitives.ts';
import { profileName } from './profile.ts';

/** Clouds whose credentials instances get in exchange for identity tokens. */
export const CLOUDS = ['aws', 'google'] as const;
export type Cloud = (typeof CLOUDS)[number];

/** Profiles with a role of their own. */
const MAX_ROLES = 64;
/** Amazon's name of its STS. Other services accept it as well. */
export const AWS_AUDIENCE = 'sts.amazonaws.com';
export const GOOGLE_STS = 'https://sts.googleapis.com/v1/token';
export const GOOGLE_IAM = 'https://iamcredentials.googleapis.com';
/** The scope with all rights of the account, which Google recommends together with IAM. */
export const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** Tags of instances that name a role, after which follows `=`. Both are reserved. */
export const ROLE_TAGS = { aws: 'gnt:aws-role', google: 'gnt:google-account' } as const;

/** Requests carry a token, so plain http is refused. */
const serverUrl = z
  .string()
  .max(1024)
  .refine((text) => /^https:\/\/[^/\s@?#\\]+(?:\/[^\s@?#\\]*)?$/.test(text) && URL.canParse(text), {
    error: 'not an https URL without user, query and fragment',
  });

/** ARN of a role. Services compatible with AWS use other partitions, and leave out the account. */
export const awsRole = z
  .string()
  .max(2048)
  .regex(/^arn:[\w-]+:iam:[\w-]*:[\w-]*:role\/(?:[\w+=.@-]+\/)*(?!\.{1,2}$)[\w+=.@-]+$/, {
    error: 'not the ARN of a role: write arn:aws:iam::ACCOUNT:role/NAME',
  });

export const googleAccount = z
  .string()
  .max(254)
  .regex(/^[a-z0-9][a-z0-9.-]*@[a-z0-9][a-z0-9.-]*$/, {
    error: 'not a service account: write NAME@PROJECT.iam.gserviceaccount.com',
  });

const byProfile = <Role extends z.ZodType>(role: Role) =>
  z
    .record(profileName, role)
    .refine((roles) => Object.keys(roles).length <= MAX_ROLES, `more than ${MAX_ROLES} profiles`)
    .optional();

export const awsSettings = z.strictObject({
  /** Security token service with the action AssumeRoleWithWebIdentity. */
  sts: serverUrl,
  /** Role of instances without another one. Absent: none. */
  role: awsRole.optional(),
  /** Roles by profile. */
  roles: byProfile(awsRole),
  /** Absent: AWS_AUDIENCE. */
  audience: audience.optional(),
  /** Region in the EC2 tree. Absent: the cluster's name. */
  region: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, 'not a region: write a name such as eu-central-1')
    .optional(),
});
export type AwsSettings = z.infer<typeof awsSettings>;

export const googleSettings = z.strictObject({
  /** Full name of the provider in a workload identity pool: the audience of the tokens. */
  provider: audience,
  /** Service account of instances without another one. Absent: the federated identity itself. */
  account: googleAccount.optional(),
  /** Accounts by profile. */
  accounts: byProfile(googleAccount),
  /** Token exchange (RFC 8693). Absent: GOOGLE_STS. */
  sts: serverUrl.optional(),
  /** Server that issues the tokens of service accounts. Absent: GOOGLE_IAM. */
  iam: serverUrl.optional(),
});
export type GoogleSettings = z.infer<typeof googleSettings>;

/** The holder of a role: an instance, with its tags and profiles. */
export interface RoleHolder {
  readonly tags: readonly string[];
  readonly profiles: readonly string[];
}

/** Returns the role of an instance, by its tag, its first profile with a role, or the default. */
export function awsRoleOf(
  holder: RoleHolder,
  { role, roles }: Pick<AwsSettings, 'role' | 'roles'>,
): string | undefined {
  return chooseRole(holder, ROLE_TAGS.aws, awsRole, { role, roles });
}

/**
 * Returns the service account of an instance, as `awsRoleOf`. Undefined: the federated identity
 * itself.
 */
export function googleAccountOf(
  holder: RoleHolder,
  { account, accounts }: Pick<GoogleSettings, 'account' | 'accounts'>,
): string | undefined {
  const given = { role: account, roles: accounts };
  return chooseRole(holder, ROLE_TAGS.google, googleAccount, given);
}

function chooseRole(
  { tags, profiles }: RoleHolder,
  name: string,
  type: z.ZodType<string>,
  { role, roles }: { readonly role?: string | undefined; readonly roles?: Roles | undefined },
): string | undefined {
  const own = tags.find((tag) => tag.startsWith(`${name}=`))?.slice(name.length + 1);
  // A misspelt tag gives no role, in place of a role with other rights.
  if (own !== undefined) return type.safeParse(own).data;
  const found = profiles.map((profile) => ownValue(roles ?? {}, profile));
  return found.find((each) => each !== undefined) ?? role;
}
type Roles = Readonly<Record<string, string>>;

/** Returns the last part of a role's ARN, by which clients ask for its credentials. */
export function nameOfRole(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}

/** Returns IMDS's answer for credentials that cannot be had; its status is 200. */
export function describeAwsFailure(code: string, message: string, nowMs: number): string {
  return formatAws({ Code: code, Message: message, LastUpdated: formatAwsTime(nowMs) });
}

export function formatAws(answer: Readonly<Record<string, string>>): string {
  return JSON.stringify(answer, null, 2);
}

/** Formats a time as IMDS does. */
export function formatAwsTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
