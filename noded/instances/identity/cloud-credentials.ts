import { createHash } from 'node:crypto';
import type { Clock } from '#shared/clock/clock.ts';
import {
  AWS_AUDIENCE,
  awsRoleOf,
  type AwsSettings,
  type Cloud,
  describeAwsFailure,
  googleAccountOf,
  type GoogleSettings,
  nameOfRole,
} from '#shared/contract/cloud-credentials.ts';
import { type TokenRequest, TOKENS_UNAVAILABLE } from '#shared/contract/identity.ts';
import { isAppError, messageOf, tellableMessage } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { TokenAnswer } from '../../net/metad-link/send-token.ts';
import { type AuditLog, formatLine } from '../run-lists/audit-log.ts';
import { assumeRole, type AwsCredentials, describeCredentials } from './assume-role.ts';
import { planClaims } from './claims.ts';
import { CredentialCache, ExchangeFailure } from './credential-cache.ts';
import { describeGoogleToken, exchangeGoogle, type GoogleToken } from './exchange-google.ts';
import type { Identities } from './identities.ts';

/** Seconds in which the service receives the token, also with a clock that is a little behind. */
const TOKEN_TTL_S = 300;

export interface CloudCredentialsDependencies {
  readonly identities: Pick<Identities, 'permit' | 'sign'>;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Permitted = Parameters<Identities['sign']>[0];

/** Exchanges identity tokens of this node's instances for temporary credentials of clouds. */
export type CloudCredentials = ReturnType<typeof createCloudCredentials>;

export function createCloudCredentials(dependencies: CloudCredentialsDependencies): {
  /** Answers in the form of the cloud's metadata service. Never fails. */
  issue(uuid: string, cloud: Cloud): Promise<TokenAnswer>;
} {
  const { identities, audit, clock, logger } = dependencies;
  const awsCache = new CredentialCache<AwsCredentials>(clock);
  const googleCache = new CredentialCache<GoogleToken>(clock);

  const sign = async (permitted: Permitted, request: TokenRequest): Promise<string> => {
    const token = await identities.sign(permitted, request);
    if (token === undefined) throw new ExchangeFailure('the cluster has no identity keys');
    return token;
  };
  const note = async ({ instance }: Permitted, line: string): Promise<void> =>
    // Credentials without a line in the log are not handed out.
    await audit.append(instance.uuid, formatLine(line, clock.now()));

  const issueAws = async (permitted: Permitted, settings: AwsSettings): Promise<TokenAnswer> => {
    const { instance, cluster } = permitted;
    const role = awsRoleOf(instance, settings);
    if (role === undefined) return refuse(404, 'this instance has no AWS role');
    const request = requestFor(settings.audience ?? AWS_AUDIENCE);
    const source = sourceOf(permitted, request, [settings.sts, role, cluster.imageCa]);
    try {
      const given = await awsCache.get(instance.uuid, source, async () => {
        const made = await assumeRole({
          ...{ sts: settings.sts, role, instance, nowMs: clock.now() },
          token: await sign(permitted, request),
          certificateAuthority: cluster.imageCa,
        });
        const until = new Date(made.expiresAtMs).toISOString();
        await note(permitted, `AWS credentials ${made.accessKeyId} of ${role} until ${until}`);
        return made;
      });
      return { kind: 'issued', token: describeCredentials(given) };
    } catch (error) {
      tell(permitted, 'aws', error);
      const [code, message] = awsFailureOf(nameOfRole(role), error);
      return { kind: 'issued', token: describeAwsFailure(code, message, clock.now()) };
    }
  };

  const issueGoogle = async (
    permitted: Permitted,
    settings: GoogleSettings,
  ): Promise<TokenAnswer> => {
    const { instance, cluster } = permitted;
    const account = googleAccountOf(instance, settings);
    const request = requestFor(settings.provider);
    const source = sourceOf(permitted, request, [settings, account, cluster.imageCa]);
    try {
      const given = await googleCache.get(instance.uuid, source, async () => {
        const made = await exchangeGoogle({
          ...{ settings, account, nowMs: clock.now() },
          token: await sign(permitted, request),
          certificateAuthority: cluster.imageCa,
        });
        const until = new Date(made.expiresAtMs).toISOString();
        await note(permitted, `Google access token of ${account ?? 'the instance'} until ${until}`);
        return made;
      });
      return { kind: 'issued', token: describeGoogleToken(given, clock.now()) };
    } catch (error) {
      tell(permitted, 'google', error);
      const refusal = error instanceof ExchangeFailure ? error.refusal : null;
      if (refusal === null) return refuse(503, TOKENS_UNAVAILABLE);
      return refuse(403, `the cloud refuses this instance: ${refusal}`);
    }
  };

  const told = new WeakSet<object>();
  /** Logs each failure once: the cache repeats it. */
  const tell = ({ instance }: Permitted, cloud: Cloud, error: unknown): void => {
    if (typeof error === 'object' && error !== null) {
      if (told.has(error)) return;
      told.add(error);
    }
    const reason = error instanceof ExchangeFailure ? error.message : tellableMessage(error);
    logger.warn('identity.not-exchanged', { instance: instance.name, cloud, reason });
  };

  return {
    issue: async (uuid, cloud) => {
      try {
        const permitted = await identities.permit(uuid);
        if ('kind' in permitted) return permitted;
        const { aws, google } = permitted.cluster.identity ?? {};
        if (cloud === 'aws' && aws !== undefined) return await issueAws(permitted, aws);
        if (cloud === 'google' && google !== undefined) return await issueGoogle(permitted, google);
        return refuse(404, 'the cluster has no credentials of this cloud');
      } catch (error) {
        const reason = isAppError(error) ? messageOf(error) : tellableMessage(error);
        logger.error('identity.not-exchanged', { uuid, cloud, reason });
        return refuse(503, TOKENS_UNAVAILABLE);
      }
    },
  };
}

function requestFor(audience: string): TokenRequest {
  // Every service verifies RS256.
  return { audience, ttl: TOKEN_TTL_S, alg: 'RS256', format: 'standard' };
}

/** Returns a digest of everything on which the credentials depend: claims, settings and role. */
function sourceOf(
  { instance, cluster }: Permitted,
  request: TokenRequest,
  others: readonly unknown[],
): string {
  const claims = planClaims(instance, cluster, request, { issuedAt: 0, id: '' });
  return createHash('sha256')
    .update(JSON.stringify([claims, others]))
    .digest('base64');
}

function awsFailureOf(role: string, error: unknown): readonly [code: string, message: string] {
  const refusal = error instanceof ExchangeFailure ? error.refusal : null;
  if (refusal === null) return ['Failed', 'the node cannot get credentials now'];
  return ['AssumeRoleUnauthorizedAccess', `the STS refuses the role ${role}: ${refusal}`];
}

function refuse(status: 403 | 404 | 503, reason: string): TokenAnswer {
  return { kind: 'refused', status, reason };
}
