import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '#shared/clock/clock.ts';
import type { IdentitySettings } from '#shared/contract/identity.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { silentLogger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';
import {
  type CloudCredentials,
  createCloudCredentials,
} from '../../noded/instances/identity/cloud-credentials.ts';
import { createIdentities, type Identities } from '../../noded/instances/identity/identities.ts';
import { planPublished } from '../../noded/instances/identity/published.ts';
import { createAuditLog } from '../../noded/instances/run-lists/audit-log.ts';
import {
  type ClusterRepository,
  createClusterRepository,
} from '../../noded/records/cluster-repository.ts';
import { unpackPackages } from '../metad/support/foreign-clients.ts';

/** The signer of a node with a real store, and the records of some instances. */
export interface IdentityLab extends AsyncDisposable {
  readonly store: Store;
  readonly clusters: ClusterRepository;
  readonly identities: Identities;
  readonly credentials: CloudCredentials;
  readonly instances: Map<string, InstanceRecord>;
  /** Lines of the log. */
  readonly log: string[];
  /** @param imageCa trusted besides the system's authorities */
  configure(identity: IdentitySettings, imageCa?: string): Promise<void>;
  /** Returns the document that verifiers read at this path. */
  published(path: string): Promise<string>;
  readAudit(uuid: string): Promise<string>;
}

/** @param common the store of several nodes; closed at the end */
export async function openIdentityLab(
  clock: Clock,
  instances: readonly InstanceRecord[],
  common?: Store,
): Promise<IdentityLab> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-identity-'));
  const store = common ?? createSqliteStore({ path: join(directory, 'store.sqlite'), clock });
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const records = new Map(instances.map((instance) => [instance.uuid, instance]));
  const log: string[] = [];
  const keep = (event: string, fields?: object): void =>
    void log.push(JSON.stringify({ event, ...fields }));
  const logger = { ...silentLogger, warn: keep, error: keep };
  const audit = createAuditLog(directory);
  const identities = createIdentities({
    ...{ clusters, clock, logger, audit },
    instances: { findByUuid: (uuid) => Promise.resolve(records.get(uuid)) },
    hasChannel: (uuid) => records.has(uuid),
  });
  return {
    ...{ store, clusters, identities, log, instances: records },
    credentials: createCloudCredentials({ identities, audit, clock, logger }),
    configure: async (identity, imageCa) => {
      await clusters.ensureIdentityKeys();
      await clusters.update((cluster) => ({
        ...{ ...cluster, name: 'lab.example.com', identity, imageCa },
      }));
    },
    published: async (path) => {
      const keys = await clusters.loadIdentityKeys();
      const documents = planPublished(await clusters.load(), keys, clock.now());
      return documents[path] ?? '';
    },
    readAudit: (uuid) => readFile(join(directory, `audit-${uuid}.log`), 'utf8'),
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Verifies as a stranger would: with the key set, the issuer and the audience alone. */
const PYJWT = `
import json, sys, jwt
token, keys, audience, issuer, now = sys.argv[1:]
header = jwt.get_unverified_header(token)
key = next(k for k in jwt.PyJWKSet.from_json(keys).keys if k.key_id == header['kid'])
claims = jwt.decode(token, key.key, algorithms=[header['alg']], audience=audience, issuer=issuer,
  options={'require': ['exp', 'iat', 'nbf', 'aud', 'iss', 'sub', 'jti'],
    'verify_exp': now == '', 'verify_nbf': now == '', 'verify_iat': now == ''})
print(json.dumps([header, claims]))`;

/**
 * Verifies a token with Debian's python3-jwt.
 * @param isTimeless the token is from a test's own clock
 * @returns its header and claims
 * @throws CommandFailed with the verifier's reason
 */
export async function verifyByPython(
  token: string,
  trusted: { readonly keys: string; readonly audience: string; readonly issuer: string },
  isTimeless = false,
): Promise<readonly [Record<string, unknown>, Record<string, unknown>]> {
  const root = await unpackPackages('python3-jwt', [
    ...['python3-jwt', 'python3-cryptography', 'python3-cffi-backend'],
  ]);
  const { keys, audience, issuer } = trusted;
  const { stdout } = await run(
    '/usr/bin/python3',
    ['-c', PYJWT, token, keys, audience, issuer, isTimeless ? 'timeless' : ''],
    { env: { PYTHONPATH: join(root, 'usr/lib/python3/dist-packages') } },
  );
  const part = z.record(z.string(), z.unknown());
  return z.tuple([part, part]).parse(JSON.parse(stdout));
}

/** Verifies an identity document as Amazon describes it, with openssl and the certificates. */
export async function verifyByOpenssl(
  signed: { readonly document: string; readonly signature: string; readonly pkcs7: string },
  certificates: string,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-openssl-'));
  try {
    const script = [
      'set -eu',
      'cd "$1"',
      'printf %s "$2" > document',
      'printf %s "$3" | base64 -d > signature',
      'printf "%s\\n%s\\n%s\\n" "-----BEGIN PKCS7-----" "$4" "-----END PKCS7-----" > rsa2048',
      'printf %s "$5" > certificate',
      'openssl x509 -pubkey -noout -in certificate > key',
      'openssl dgst -sha256 -verify key -signature signature document >&2',
      // As Amazon's page, and with the certificate as the only trusted one.
      'openssl smime -verify -in rsa2048 -inform PEM -certfile certificate -noverify -nointern > found',
      'cmp document found',
    ].join('\n');
    const { document, signature, pkcs7 } = signed;
    await run('sh', ['-c', script, 'verify', directory, document, signature, pkcs7, certificates]);
  } finally {
    await rm(directory, { recursive: true });
  }
}
