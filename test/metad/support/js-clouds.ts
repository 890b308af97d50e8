import { fromInstanceMetadata } from '@smithy/credential-provider-imds';
import { GoogleAuth } from 'google-auth-library';

/**
 * Runs in a guest's network: `js-clouds.ts aws`, `google` or `google-file`. Prints, as JSON, the
 * credentials that the cloud's own client finds, the last by GOOGLE_APPLICATION_CREDENTIALS.
 */
async function find(cloud: string | undefined): Promise<unknown> {
  if (cloud === 'aws') return fromInstanceMetadata({ ec2MetadataV1Disabled: true })();
  const auth = new GoogleAuth();
  const client = await auth.getClient();
  const { token } = await client.getAccessToken();
  if (cloud === 'google-file') return { token };
  const { client_email: email } = await auth.getCredentials();
  const idTokens = await auth.getIdTokenClient('https://vault.example.com');
  const [, identity] = (await idTokens.getRequestHeaders()).get('authorization')?.split(' ') ?? [];
  return { token, email, identity };
}

process.stdout.write(JSON.stringify(await find(process.argv[2])));
