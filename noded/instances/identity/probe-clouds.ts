import type { ClusterRecord } from '#shared/contract/api.ts';
import { GOOGLE_IAM, GOOGLE_STS } from '#shared/contract/cloud-credentials.ts';
import { askSts } from './ask-sts.ts';
import { accountUrl } from './exchange-google.ts';
import { ExchangeFailure } from './credential-cache.ts';

interface Server {
  /** Option and key of its URL. */
  readonly setting: string;
  readonly url: string;
  /** An incomplete request for credentials. */
  readonly body: string;
}

export interface ProbedServer {
  readonly setting: string;
  /** Null for a server that answers requests for credentials. */
  readonly problem: string | null;
}

/** Asks the servers of the settings for credentials, without a token. */
export async function probeClouds({
  identity,
  imageCa,
}: Pick<ClusterRecord, 'identity' | 'imageCa'>): Promise<readonly ProbedServer[]> {
  return Promise.all(
    serversOf(identity).map(async (server) => ({
      setting: server.setting,
      problem: await probe(server, imageCa),
    })),
  );
}

function serversOf(identity: ClusterRecord['identity']): readonly Server[] {
  const { aws, google } = identity ?? {};
  const servers: Server[] = [];
  if (aws !== undefined)
    servers.push({
      ...{ setting: '--identity-aws sts', url: aws.sts },
      body: 'Action=AssumeRoleWithWebIdentity&Version=2011-06-15',
    });
  if (google === undefined) return servers;
  servers.push({
    ...{ setting: '--identity-google sts', url: google.sts ?? GOOGLE_STS },
    body: 'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange',
  });
  const account = google.account ?? Object.values(google.accounts ?? {})[0];
  if (account !== undefined)
    servers.push({
      ...{ setting: '--identity-google iam', body: '' },
      url: accountUrl(google.iam ?? GOOGLE_IAM, account),
    });
  return servers;
}

async function probe(
  { url, body }: Server,
  certificateAuthority: string | undefined,
): Promise<string | null> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  try {
    await askSts({ url, body, headers, secrets: [], certificateAuthority }, () => ({}));
    return null;
  } catch (error) {
    if (!(error instanceof ExchangeFailure)) throw error;
    // Such a server refuses the incomplete request. A wrong path is unknown to any server.
    const isRefusal = error.refusal !== null && error.refusal !== 'status 404';
    return isRefusal ? null : error.message;
  }
}
