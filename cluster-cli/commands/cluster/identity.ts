import type { ClusterRecord } from '#shared/contract/api.ts';
import {
  type IdentityChanges,
  type IdentitySettings,
  namesOfIdentity,
} from '#shared/contract/identity.ts';
import type { OutlineEntry } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { orUnset } from '../instance/parse-documents.ts';
import { listOrNone, parseRemovable } from './services.ts';

export interface IdentityOptions {
  readonly identity?: IdentitySettings['policy'];
  readonly identityTrustDomain?: string;
  readonly identityIssuer?: string;
  readonly identityAudiences?: string;
  readonly identityRevoke?: readonly string[];
}

/** Returns the settings of identities that the options change. @throws AppError USAGE */
export function composeIdentity(
  options: IdentityOptions,
  context: Pick<Context, 'warn'>,
): { readonly identity?: IdentityChanges } {
  const { identity, identityTrustDomain, identityIssuer, identityAudiences } = options;
  const revoked = parseRemovable('--identity-revoke', revocations(options), context);
  const changes = {
    ...(identity !== undefined && { policy: identity }),
    ...(identityTrustDomain !== undefined && { trustDomain: orUnset(identityTrustDomain) }),
    ...(identityIssuer !== undefined && { issuer: orUnset(identityIssuer) }),
    ...(identityAudiences !== undefined && { audiences: listOrNone(identityAudiences) }),
    ...(revoked.length > 0 && {
      revoked: Object.fromEntries(revoked.map(([uuid, value]) => [uuid, value !== null])),
    }),
  };
  return Object.keys(changes).length === 0 ? {} : { identity: changes };
}

/** Completes `UUID` to `UUID=yes`, as against `UUID=none`. */
function revocations({ identityRevoke = [] }: IdentityOptions): readonly string[] {
  return identityRevoke.map((text) => (text.includes('=') ? text : `${text}=yes`));
}

/** Returns the lines of `info`. */
export function describeIdentity(cluster: ClusterRecord): readonly OutlineEntry[] {
  const { identity } = cluster;
  if (identity === undefined || identity.policy === 'no')
    return [{ key: 'Identities of instances', value: 'none' }];
  const { trustDomain, issuer } = namesOfIdentity(cluster);
  const policy = identity.policy === 'yes' ? 'all instances' : 'instances with tag gnt:identity';
  return [
    {
      key: 'Identities of instances',
      value: policy,
      children: [
        { key: 'Trust domain', value: trustDomain },
        { key: 'Issuer', value: issuer },
        { key: 'Audiences', value: identity.audiences?.join(', ') ?? 'all' },
        { key: 'Revoked', value: identity.revoked?.join(', ') ?? 'none' },
      ],
    },
  ];
}
