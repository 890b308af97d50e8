import type { ClusterRecord } from '#shared/contract/api.ts';
import { namesOfIdentity } from '#shared/contract/identity.ts';
import { chooseKeys, type KeyGeneration } from '../../records/identity-keys.ts';
import { parseKeys } from './signing-keys.ts';

/** Media types of the documents, by the end of their names. */
const TYPES = { json: 'application/json', pem: 'application/x-pem-file' } as const;

/**
 * Returns the public documents for verifiers by their path below the issuer: OpenID discovery, the
 * key sets, certificates of EC2's signatures, and revoked instances. Pure.
 * @param generations newest first
 */
export function planPublished(
  cluster: Pick<ClusterRecord, 'name' | 'identity'>,
  generations: readonly KeyGeneration[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const { issuer } = namesOfIdentity(cluster);
  const { published } = chooseKeys(generations, nowMs);
  const keys = published.map(parseKeys).flatMap(({ ES256, RS256 }) => [ES256, RS256]);
  const keySet = (use: string): object[] => keys.map((key) => ({ ...key.published, use }));
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  return {
    '.well-known/openid-configuration': json({
      issuer,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256'],
    }),
    '.well-known/jwks.json': json({ keys: keySet('sig') }),
    // SPIFFE Trust Domain and Bundle, 4. Readers take a higher sequence for a newer bundle.
    'spiffe/bundle.json': json({
      spiffe_sequence: generations[0]?.createdAtMs ?? 0,
      spiffe_refresh_hint: 300,
      keys: keySet('jwt-svid'),
    }),
    'ec2-certificates.pem': published.map(({ certificate }) => certificate).join(''),
    'revoked.json': json({ instances: cluster.identity?.revoked ?? [] }),
  };
}

export function typeOfPublished(path: string): string {
  return path.endsWith('.pem') ? TYPES.pem : TYPES.json;
}
