import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ClusterRecord } from '#shared/contract/api.ts';
import {
  type IdentityChanges,
  type IdentitySettings,
  namesOfIdentity,
} from '#shared/contract/identity.ts';
import { uuid } from '#shared/contract/primitives.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { formatTime } from '../../render/format.ts';
import type { OutlineEntry } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { orUnset } from '../instance/parse-documents.ts';
import { describeClouds, parseAws, parseGoogle } from './clouds.ts';
import { listOrNone, parseRemovable } from './services.ts';

export interface IdentityOptions {
  readonly identity?: IdentitySettings['policy'];
  readonly identityTrustDomain?: string;
  readonly identityIssuer?: string;
  readonly identityAudiences?: string;
  readonly identityAws?: string;
  readonly identityGoogle?: string;
  readonly identityRevoke?: readonly string[];
}

/** Returns the settings of identities that the options change. @throws AppError USAGE */
export function composeIdentity(
  options: IdentityOptions,
  context: Pick<Context, 'values' | 'warn'>,
): { readonly identity?: IdentityChanges } {
  const { identity, identityTrustDomain, identityIssuer, identityAudiences } = options;
  const { identityAws, identityGoogle } = options;
  const revoked = parseRemovable('--identity-revoke', revocations(options), context);
  const changes = {
    ...(identity !== undefined && { policy: identity }),
    ...(identityTrustDomain !== undefined && { trustDomain: orUnset(identityTrustDomain) }),
    ...(identityIssuer !== undefined && { issuer: orUnset(identityIssuer) }),
    ...(identityAudiences !== undefined && { audiences: listOrNone(identityAudiences) }),
    ...(identityAws !== undefined && { aws: parseAws(identityAws, context) }),
    ...(identityGoogle !== undefined && { google: parseGoogle(identityGoogle, context) }),
    ...(revoked.length > 0 && {
      revoked: Object.fromEntries(
        revoked.map(([name, value]) => [requireUuid(name), value !== null]),
      ),
    }),
  };
  return Object.keys(changes).length === 0 ? {} : { identity: changes };
}

/** @throws AppError USAGE */
function requireUuid(text: string): string {
  if (uuid.safeParse(text).success) return text;
  throw new AppError('USAGE', `option --identity-revoke: '${text}' is not a UUID`, {
    hint: `Find the UUID with gnt-instance info ${text}; a rename does not change it`,
  });
}

/** Completes `UUID` to `UUID=yes`, as against `UUID=none`. */
function revocations({ identityRevoke = [] }: IdentityOptions): readonly string[] {
  return identityRevoke.map((text) => (text.includes('=') ? text : `${text}=yes`));
}

/** Returns the lines of `info`. */
export function describeIdentity(cluster: ClusterRecord): readonly OutlineEntry[] {
  const { identity } = cluster;
  if (identity === undefined || identity.policy === 'no')
    return [{ key: 'Identity tokens', value: 'none' }];
  const { trustDomain, issuer } = namesOfIdentity(cluster);
  const policy = identity.policy === 'yes' ? 'all instances' : 'instances with tag gnt:identity';
  return [
    {
      key: 'Identity tokens',
      value: policy,
      children: [
        { key: 'Trust domain', value: trustDomain },
        { key: 'Issuer', value: issuer },
        { key: 'Audiences', value: identity.audiences?.join(', ') ?? 'all' },
        ...describeClouds(identity),
        { key: 'Revoked', value: identity.revoked?.join(', ') ?? 'none' },
      ],
    },
  ];
}

/**
 * Writes the public documents for verifiers below a directory, for any web server.
 * @throws AppError USAGE, FILE_UNREADABLE
 */
export async function runIdentity(
  context: Context,
  action: string,
  directory: string,
): Promise<void> {
  if (action !== 'export')
    throw new AppError('USAGE', `identity: '${action}' is not an action`, {
      hint: 'gnt-cluster identity export DIR',
    });
  const client = await context.client();
  const { issuer, documents } = await client.ask('GET /v1/cluster/identity');
  // A web server reads them as another user.
  const umask = process.umask(0o022);
  try {
    for (const [name, text] of Object.entries(documents))
      context.print(await writeDocument(join(directory, name), text));
  } finally {
    process.umask(umask);
  }
  context.note(`serve this directory at ${issuer}`);
}

async function writeDocument(path: string, text: string): Promise<string> {
  try {
    await mkdir(dirname(path), { recursive: true });
    // A verifier never reads half of a document.
    await writeDurably(path, text, { mode: 0o644 });
    return path;
  } catch (error) {
    throw new AppError('FILE_UNREADABLE', `${path}: ${messageOf(error)}`, {
      hint: 'Give a directory in which this user may write.',
      cause: error,
    });
  }
}

/** Seconds in which verifiers read the new keys. */
const DEFAULT_OVERLAP_S = 3600;

export async function runRenewIdentityKeys(
  context: Context,
  { overlap = DEFAULT_OVERLAP_S, json }: { readonly overlap?: number; readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const { keys } = await client.ask('POST /v1/cluster/identity-keys', {
    body: { overlapS: overlap },
  });
  if (json === true) {
    context.print(JSON.stringify({ keys }, null, 2));
    return;
  }
  const [{ signsFromMs = 0 } = {}] = keys;
  context.note(
    signsFromMs === 0
      ? 'identity keys replaced: former tokens are no longer accepted'
      : `identity keys renewed: the new keys sign from ${formatTime(signsFromMs)}`,
  );
  context.note('if a web server publishes the keys: gnt-cluster identity export DIR');
}
