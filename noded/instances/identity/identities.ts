import { randomUUID } from 'node:crypto';
import type { Clock } from '#shared/clock/clock.ts';
import type { ClusterRecord } from '#shared/contract/api.ts';
import { awsRoleOf, googleAccountOf } from '#shared/contract/cloud-credentials.ts';
import { ec2Document } from '#shared/contract/ec2-document.ts';
import {
  parseTokenRequest,
  TOKENS_UNAVAILABLE,
  type TokenRequest,
  type ViewIdentity,
} from '#shared/contract/identity.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { TokenAnswer } from '../../net/metad-link/send-token.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { chooseKeys, type KeyGeneration } from '../../records/identity-keys.ts';
import { type AuditLog, formatLine } from '../run-lists/audit-log.ts';
import { judgeIdentity, planClaims } from './claims.ts';
import { parseKeys, signBytes, signPkcs7, type SigningKeys, signToken } from './signing-keys.ts';

/** Signed documents that are kept; the oldest is dropped first. More than a node has instances. */
const MAX_DOCUMENTS = 4096;

export interface IdentitiesDependencies {
  readonly clusters: Pick<ClusterRepository, 'load' | 'loadIdentityKeys'>;
  readonly instances: { findByUuid(uuid: string): Promise<InstanceRecord | undefined> };
  /** Returns whether a guest runs on this node, with its channel and its record. */
  readonly hasChannel: (uuid: string) => boolean;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An instance with an identity, and the settings that apply to it. */
interface Permitted {
  readonly instance: InstanceRecord;
  readonly cluster: ClusterRecord;
  /** Audiences of its tokens; null: all. */
  readonly audiences: readonly string[] | null;
}

/** Signs the identities of this node's instances. */
export interface Identities {
  issue(uuid: string, query: URLSearchParams): Promise<TokenAnswer>;
  /** Returns the refusal if the instance has no identity, or does not run here. */
  permit(uuid: string): Promise<Permitted | Extract<TokenAnswer, { readonly kind: 'refused' }>>;
  /**
   * Returns a token of the instance, for any audience. Undefined without keys.
   * @throws AppError of the store or the log
   */
  sign(permitted: Permitted, request: TokenRequest): Promise<string | undefined>;
  /** Returns the view's part; undefined for an instance without an identity. Never fails. */
  planView(
    view: InstanceView,
    instance: InstanceRecord,
    cluster: ClusterRecord,
  ): Promise<ViewIdentity | undefined>;
  /**
   * Returns whether views must be published again, because settings or the signing key have changed
   * since the last call.
   */
  hasChanged(): Promise<boolean>;
}

export function createIdentities(dependencies: IdentitiesDependencies): Identities {
  const { clusters, instances, hasChannel, audit, clock, logger } = dependencies;
  const documents = new Map<
    string,
    { readonly source: string; readonly ec2: ViewIdentity['ec2'] }
  >();
  let parsed: { readonly source: KeyGeneration; readonly keys: SigningKeys } | undefined;
  let seen: string | undefined;

  const findSigning = async (): Promise<KeyGeneration | undefined> =>
    chooseKeys(await clusters.loadIdentityKeys(), clock.now()).signing;
  const keysOf = (source: KeyGeneration): SigningKeys => {
    if (parsed?.source.es256 !== source.es256) parsed = { source, keys: parseKeys(source) };
    return parsed.keys;
  };

  const permit: Identities['permit'] = async (uuid) => {
    const cluster = await clusters.load();
    const instance = hasChannel(uuid) ? await instances.findByUuid(uuid) : undefined;
    if (instance === undefined) return refuse(404, 'this instance has no channel on this node');
    const permission = judgeIdentity(instance, cluster);
    if ('refusal' in permission) return refuse(403, permission.refusal);
    return { instance, cluster, ...permission };
  };
  const sign: Identities['sign'] = async ({ instance, cluster }, request) => {
    const signing = await findSigning();
    if (signing === undefined) return undefined;
    const { [request.alg]: key } = keysOf(signing);
    const time = { issuedAt: Math.floor(clock.now() / 1000), id: randomUUID() };
    const token = await signToken(planClaims(instance, cluster, request, time), key);
    const { audience, ttl } = request;
    const line = `identity token ${time.id} for ${audience}, ${ttl} s, key ${key.published.kid}`;
    // A token without a line in the log is not handed out.
    await audit.append(instance.uuid, formatLine(line, clock.now()));
    return token;
  };
  const issue = async (uuid: string, request: TokenRequest): Promise<TokenAnswer> => {
    const permitted = await permit(uuid);
    if ('kind' in permitted) return permitted;
    if (permitted.audiences?.includes(request.audience) === false)
      return refuse(403, 'this audience is not allowed for this instance');
    const token = await sign(permitted, request);
    if (token === undefined) return refuse(503, 'the cluster has no identity keys');
    return { kind: 'issued', token };
  };

  const signDocument = async (uuid: string, document: string): Promise<ViewIdentity['ec2']> => {
    const signing = await findSigning();
    if (signing === undefined) return undefined;
    const source = `${signing.certificate}${document}`;
    const known = documents.get(uuid);
    if (known?.source === source) return known.ec2;
    const signature = await signBytes(Buffer.from(document), keysOf(signing).RS256.key);
    const pkcs7 = await signPkcs7(document, signing);
    const ec2 = { document, signature: signature.toString('base64'), pkcs7 };
    const [oldest] = documents.keys();
    if (oldest !== undefined && documents.size >= MAX_DOCUMENTS) documents.delete(oldest);
    documents.set(uuid, { source, ec2 });
    return ec2;
  };

  return {
    ...{ permit, sign },
    issue: async (uuid, query) => {
      try {
        return await issue(uuid, parseTokenRequest(query));
      } catch (error) {
        if (isAppError(error, 'VALIDATION')) return refuse(400, error.message);
        logger.error('identity.not-issued', { uuid, reason: tellableMessage(error) });
        // The reason may have the address of the store.
        return refuse(503, TOKENS_UNAVAILABLE);
      }
    },
    planView: async (view, instance, cluster) => {
      if ('refusal' in judgeIdentity(instance, cluster)) return undefined;
      const identity = planClouds(instance, cluster);
      try {
        const document = ec2Document({ ...view, identity });
        const ec2 = await signDocument(instance.uuid, document);
        return ec2 === undefined ? identity : { ...identity, ec2 };
      } catch (error) {
        // The guest starts anyway, with an unsigned document.
        const reason = tellableMessage(error);
        logger.error('identity.document-not-signed', { instance: instance.name, reason });
        return identity;
      }
    },
    hasChanged: async () => {
      const { identity = null } = await clusters.load();
      const signing = identity && (await findSigning().catch(() => undefined));
      const former = seen;
      seen = JSON.stringify([identity, signing?.certificate]);
      return former !== undefined && former !== seen;
    },
  };
}

/** Returns the clouds of which the instance may get credentials. */
function planClouds(instance: InstanceRecord, { identity }: ClusterRecord): ViewIdentity {
  const { aws, google } = identity ?? {};
  const role = aws && awsRoleOf(instance, aws);
  return {
    ...(aws?.region !== undefined && { region: aws.region }),
    ...(role !== undefined && { aws: { role } }),
    ...(google && { google: { account: googleAccountOf(instance, google) ?? null } }),
  };
}

function refuse(
  status: 400 | 403 | 404 | 503,
  reason: string,
): Extract<TokenAnswer, { readonly kind: 'refused' }> {
  return { kind: 'refused', status, reason };
}
