import {
  type IdentityChanges,
  type IdentitySettings,
  MAX_REVOKED,
} from '#shared/contract/identity.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** Returns the changed settings of identities. Pure. @throws AppError VALIDATION */
export function mergeIdentity(
  settings: IdentitySettings = { policy: 'no' },
  { policy, trustDomain, issuer, audiences, revoked = {}, aws, google }: IdentityChanges,
): IdentitySettings {
  const all = new Set(settings.revoked);
  for (const [uuid, isRevoked] of Object.entries(revoked)) {
    if (isRevoked) all.add(uuid);
    else all.delete(uuid);
  }
  if (all.size > MAX_REVOKED)
    throw new AppError('VALIDATION', `more than ${MAX_REVOKED} revoked identities`, {
      hint: 'End revocations of removed instances: gnt-cluster modify --identity-revoke UUID=none',
    });
  return withoutUnset({
    policy: policy ?? settings.policy,
    trustDomain: trustDomain === undefined ? settings.trustDomain : trustDomain,
    issuer: issuer === undefined ? settings.issuer : issuer,
    audiences: audiences ?? settings.audiences ?? [],
    revoked: [...all].sort(),
    aws: aws === undefined ? settings.aws : aws,
    google: google === undefined ? settings.google : google,
  });
}

/** Leaves out unset values and empty lists. */
function withoutUnset(given: {
  readonly policy: IdentitySettings['policy'];
  readonly trustDomain: IdentityChanges['trustDomain'];
  readonly issuer: IdentityChanges['issuer'];
  readonly audiences: string[];
  readonly revoked: string[];
  readonly aws: IdentityChanges['aws'];
  readonly google: IdentityChanges['google'];
}): IdentitySettings {
  const { policy, trustDomain, issuer, audiences, revoked, aws, google } = given;
  return {
    policy,
    ...(trustDomain != null && { trustDomain }),
    ...(issuer != null && { issuer }),
    ...(audiences.length > 0 && { audiences }),
    ...(revoked.length > 0 && { revoked }),
    ...(aws != null && { aws }),
    ...(google != null && { google }),
  };
}
