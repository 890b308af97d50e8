import { createHash, X509Certificate } from 'node:crypto';
import { instanceName } from '#shared/contract/primitives.ts';
import { run } from '#shared/process/run.ts';

/**
 * Key and certificate of this daemon for its data links. The key stays in memory and lasts as long
 * as the process.
 */
export interface NodeCertificate {
  /** Private key and certificate. */
  readonly pem: string;
  readonly fingerprint: string;
}

/** Other nodes compare the key only, so its end has no effect. */
const VALID_DAYS = 3650;

/** Uses openssl, since Node creates keys but no certificates. */
export async function makeNodeCertificate(nodeName: string): Promise<NodeCertificate> {
  const { stdout } = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
    ...['-keyout', '-', '-sha256', '-days', String(VALID_DAYS)],
    // A common name has at most 64 characters, so the name is an alternative name.
    ...['-subj', '/CN=gnt data link', '-addext', `subjectAltName=DNS:${nodeName}`],
  ]);
  return { pem: stdout, fingerprint: fingerprintOf(new X509Certificate(stdout)) };
}

/** Returns the SHA-256 of the public key (SubjectPublicKeyInfo), in hexadecimal. */
export function fingerprintOf({ publicKey }: X509Certificate): string {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex');
}

/** Returns the name that the holder of a certificate claims; undefined if it is no node name. */
export function claimedName({ subjectAltName }: X509Certificate): string | undefined {
  const name = /^DNS:([a-z0-9.-]+)$/.exec(subjectAltName ?? '')?.[1];
  return instanceName.safeParse(name).data;
}
