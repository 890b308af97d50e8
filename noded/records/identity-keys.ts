import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Clock } from '#shared/clock/clock.ts';
import { MAX_TOKEN_TTL_S } from '#shared/contract/identity.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';

export const IDENTITY = 'identity';
const KEYS = 'keys';
/** Renewals that may overlap. */
const MAX_GENERATIONS = 8;
/** Difference between the clocks of nodes and verifiers. */
const CLOCK_SKEW_MS = 300_000;
/** The certificate only carries the key to verifiers of EC2's documents. */
const CERTIFICATE_DAYS = 10 * 365;

/** The keys of one renewal, in PEM: PKCS#8, and X.509 for the RSA key. */
const keyGeneration = z.strictObject({
  createdAtMs: z.number(),
  /** From here on it signs. Earlier it is only published, so that verifiers learn it. */
  signsFromMs: z.number(),
  es256: z.string(),
  rs256: z.string(),
  certificate: z.string(),
});
export type KeyGeneration = Readonly<z.infer<typeof keyGeneration>>;
/** Newest first. */
const identityKeys = z.strictObject({
  schema: z.literal(1),
  generations: z.array(keyGeneration).min(1).max(MAX_GENERATIONS),
});

/** Stores the identity keys, for all nodes. */
export interface IdentityKeyRepository {
  /** Returns the keys, newest first; empty without any. @throws AppError RECORD_UNREADABLE */
  loadIdentityKeys(): Promise<readonly KeyGeneration[]>;
  /** Creates the first keys, which sign at once. Does nothing if there are keys. */
  ensureIdentityKeys(): Promise<void>;
  /**
   * Adds keys that are published at once and sign after the overlap. Without an overlap, or if the
   * former keys cannot be read, all former keys are removed.
   * @throws AppError CONFLICT after too many renewals in one overlap
   */
  renewIdentityKeys(overlapMs: number): Promise<readonly KeyGeneration[]>;
}

export function createIdentityKeyRepository(
  store: Store,
  clock: Pick<Clock, 'now'>,
): IdentityKeyRepository {
  const load = async (): Promise<{
    readonly generations: readonly KeyGeneration[];
    readonly revision: number | 'absent';
  }> => {
    const stored = await store.get(IDENTITY, KEYS);
    if (stored === undefined) return { generations: [], revision: 'absent' };
    const { generations } = parseRecord(identityKeys, IDENTITY, stored);
    return { generations, revision: stored.revision };
  };
  const write = async (
    generations: readonly KeyGeneration[],
    expected: number | 'absent' | 'any',
  ): Promise<void> => {
    const value = { schema: 1, generations };
    await store.commit([{ collection: IDENTITY, id: KEYS, expected, value }]);
  };
  return {
    loadIdentityKeys: async () => (await load()).generations,
    ensureIdentityKeys: async () => {
      if ((await load()).generations.length > 0) return;
      try {
        await write([await makeGeneration(clock.now(), 0)], 'absent');
      } catch (error) {
        // Another node has created them.
        if (!(error instanceof StoreConflict)) throw error;
      }
    },
    renewIdentityKeys: async (overlapMs) => {
      const nowMs = clock.now();
      for (;;) {
        const { generations, revision } = await load().catch((error: unknown) => {
          if (!isAppError(error, 'RECORD_UNREADABLE')) throw error;
          return { generations: [], revision: 'any' as const };
        });
        const kept = overlapMs === 0 ? [] : chooseKeys(generations, nowMs).published;
        if (kept.length >= MAX_GENERATIONS)
          throw new AppError('CONFLICT', `${kept.length} identity keys overlap already`, {
            hint: 'Wait until the oldest has expired, or replace all at once: --overlap 0',
          });
        // Nothing signs while the first key waits.
        const signsFromMs = kept.length === 0 ? 0 : nowMs + overlapMs;
        const renewed = [await makeGeneration(nowMs, signsFromMs), ...kept];
        try {
          await write(renewed, revision);
          return renewed;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
  };
}

/**
 * Returns the keys that sign now, and the keys to publish: future ones, the signing ones, and
 * former ones while their last tokens are valid. Depends on the time alone, so that nodes agree.
 * @param generations newest first
 */
export function chooseKeys(
  generations: readonly KeyGeneration[],
  nowMs: number,
): {
  readonly signing: KeyGeneration | undefined;
  readonly published: readonly KeyGeneration[];
} {
  const lastsMs = MAX_TOKEN_TTL_S * 1000 + CLOCK_SKEW_MS;
  // If the clock was set back before all of them, the oldest signs.
  const signing = generations.find(({ signsFromMs }) => signsFromMs <= nowMs) ?? generations.at(-1);
  const published = generations.filter((_generation, index) => {
    const successor = generations[index - 1];
    return successor === undefined || successor.signsFromMs + lastsMs > nowMs;
  });
  return { signing, published };
}

async function makeGeneration(nowMs: number, signsFromMs: number): Promise<KeyGeneration> {
  const generate = promisify(generateKeyPair);
  const ec = await generate('ec', { namedCurve: 'P-256' });
  const rsa = await generate('rsa', { modulusLength: 2048 });
  const rs256 = String(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return {
    createdAtMs: nowMs,
    signsFromMs,
    es256: String(ec.privateKey.export({ type: 'pkcs8', format: 'pem' })),
    rs256,
    certificate: await certify(rs256),
  };
}

/**
 * Returns a self-signed certificate, by openssl: Node has no function for it. The key goes through
 * a pipe, never into a file or an argument.
 */
async function certify(key: string): Promise<string> {
  const script =
    'exec openssl req -x509 -new -sha256 -key <(cat) -days "$1" -subj "/CN=gnt instance identity"';
  const args = ['-c', script, 'certify', String(CERTIFICATE_DAYS)];
  const { stdout } = await run('bash', args, { input: key });
  return `${stdout.trim()}\n`;
}
