import type { ClusterRecord } from '#shared/contract/api.ts';
import { namesOfIdentity, type TokenRequest } from '#shared/contract/identity.ts';
import type { InstallRecord, InstanceRecord } from '#shared/contract/instance.ts';
import { redactSource } from '#shared/contract/redact-source.ts';

/** The tag of the policy `tagged`; a reserved one. */
export const IDENTITY_TAG = 'gnt:identity';
/** Characters of all tags in a token, which has to fit into a header. */
const MAX_TAG_CHARACTERS = 2048;

/** Audiences for which an instance may get tokens; null: all. */
type Permission = { readonly audiences: readonly string[] | null } | { readonly refusal: string };

/**
 * Decides whether an instance has an identity. Tags `gnt:identity=AUDIENCE` limit its audiences
 * under both policies. Pure.
 */
export function judgeIdentity(
  { uuid, tags }: Pick<InstanceRecord, 'uuid' | 'tags'>,
  { identity }: Pick<ClusterRecord, 'identity'>,
): Permission {
  if (identity === undefined || identity.policy === 'no')
    return { refusal: 'identity tokens are off; turn them on with gnt-cluster modify --identity' };
  if (identity.revoked?.includes(uuid) === true)
    return { refusal: 'the identity of this instance is revoked' };
  const own = tags.flatMap((tag) =>
    tag.startsWith(`${IDENTITY_TAG}=`) ? [tag.slice(IDENTITY_TAG.length + 1)] : [],
  );
  const isTagged = own.length > 0 || tags.includes(IDENTITY_TAG);
  if (identity.policy === 'tagged' && !isTagged)
    return { refusal: `this instance has no tag ${IDENTITY_TAG}` };
  const isForAll = own.length === 0 || tags.includes(IDENTITY_TAG);
  const shared = identity.audiences ?? null;
  if (isForAll) return { audiences: shared };
  return { audiences: own.filter((one) => shared === null || shared.includes(one)) };
}

export interface TokenTime {
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  /** Identifies the token in the audit log. */
  readonly id: string;
}

/** Returns the claims of a token (RFC 7519, 4.1) with the facts of the instance's record. Pure. */
export function planClaims(
  instance: InstanceRecord,
  cluster: ClusterRecord,
  request: TokenRequest,
  { issuedAt, id }: TokenTime,
): object {
  const { trustDomain, issuer } = namesOfIdentity(cluster);
  return {
    iss: issuer,
    sub: `spiffe://${trustDomain}/instance/${instance.uuid}`,
    aud: request.audience,
    exp: issuedAt + request.ttl,
    nbf: issuedAt,
    iat: issuedAt,
    jti: id,
    gnt: {
      name: instance.name,
      uuid: instance.uuid,
      node: instance.primaryNode,
      cluster: cluster.name,
      ...describeTags(instance.tags),
      os: instance.osType,
      installation: describeInstallation(instance),
      provenance: describeProvenance(instance.install),
    },
    ...(request.format === 'full' && { google: describeForGoogle(instance, cluster) }),
  };
}

/** Leaves out all tags if they are too long: a part of them could pass for the whole. */
function describeTags(tags: readonly string[]): object {
  const isTooLong = tags.join('').length > MAX_TAG_CHARACTERS;
  return isTooLong ? { tags_omitted: true } : { tags };
}

function toSeconds(ms: number | null | undefined): number | null {
  return ms == null ? null : Math.floor(ms / 1000);
}

/** Returns null for an instance whose content this cluster did not install. */
function describeProvenance(install: InstallRecord | null): object | null {
  if (install?.provenance === undefined) return null;
  const { imageChecksum, imageKey, osDigest, applianceDigest } = install.provenance;
  return {
    image_checksum: imageChecksum,
    image_key: imageKey,
    os_digest: osDigest,
    appliance_digest: applianceDigest,
    result: install.state,
    installed_at: toSeconds(install.endedAtMs),
  };
}

function describeInstallation(instance: InstanceRecord): object {
  const { install } = instance;
  return {
    id: instance.instanceId,
    state: instance.installState,
    job: install?.jobId ?? null,
    started_at: toSeconds(install?.startedAtMs),
    ended_at: toSeconds(install?.endedAtMs),
    image: instance.osImage === null ? null : redactSource(instance.osImage),
    image_checksum: instance.osImageChecksum,
    package_checksum: instance.personalizationChecksum,
    appliance: instance.appliance,
  };
}

/** Returns the claims of Google's tokens with `format=full` that have a meaning here. */
function describeForGoogle(instance: InstanceRecord, cluster: ClusterRecord): object {
  return {
    compute_engine: {
      project_id: cluster.name,
      zone: instance.primaryNode,
      instance_id: instance.uuid,
      instance_name: instance.name,
      instance_creation_timestamp: Math.floor(instance.createdAtMs / 1000),
    },
  };
}
