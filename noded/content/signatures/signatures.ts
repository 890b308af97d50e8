import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import type { ImageKey, ImageKeys } from '#shared/contract/image-keys.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { redactSource } from '#shared/contract/redact-source.ts';
import { collect, TooLong } from '#shared/stream/collect.ts';
import { openBytes, type PackageOptions } from '../downloads/package-source.ts';
import { parseSource, type Source } from '../downloads/transfer/source-url.ts';
import { type ContentCheck, createDigestCheck } from './content-check.ts';
import {
  type GpgvOptions,
  MAX_SIGNATURE_BYTES,
  type OpenpgpKey,
  parseOpenpgpSignature,
  startGpgv,
} from './gpgv.ts';
import {
  type MinisignKey,
  parseMinisignSignature,
  requireNamedKey,
  verifyMinisign,
} from './minisign.ts';
import { SignatureProblem } from './signature-problem.ts';

export type SignatureAccess = Pick<PackageOptions, 'user' | 'password' | 'signal'>;

/** The detached signatures of images and packages, which are required once a key is configured. */
export interface Signatures {
  /**
   * Creates the check that a signature beside the source is of its content and by a configured key.
   * Null when no key is configured.
   * @param onValid called with the key of a valid signature, `minisign:PUBLIC-KEY` or
   * `openpgp:FINGERPRINT`
   * @throws AppError SIGNATURE_INVALID for a missing or malformed signature, HOST_PREREQUISITE
   */
  checkOf(
    source: string,
    access: SignatureAccess,
    onValid?: (key: string) => void,
  ): Promise<ContentCheck | null>;
}

export interface SignaturesOptions {
  readonly loadKeys: () => Promise<ImageKeys>;
  readonly limits: () => Promise<DownloadLimits>;
  readonly netrcFile: string;
  readonly gpgv: GpgvOptions;
}

type Kind = ImageKey['kind'];

/** Suffixes of signatures beside the content, in search order. */
const SUFFIXES: readonly (readonly [suffix: string, kind: Kind])[] = [
  ['.minisig', 'minisign'],
  ['.asc', 'openpgp'],
  ['.sig', 'openpgp'],
  ['.gpg', 'openpgp'],
];

interface Found {
  readonly kind: Kind;
  readonly shown: string;
  readonly bytes: Buffer;
}

export function createSignatures(options: SignaturesOptions): Signatures {
  return {
    async checkOf(source, access, onValid = () => undefined) {
      const keys = Object.entries(await options.loadKeys());
      if (keys.length === 0) return null;
      const kinds = new Set(keys.map(([, { kind }]) => kind));
      const checks: ContentCheck[] = [];
      let wrong: AppError | undefined;
      const reasons: string[] = [];
      try {
        for (const [suffix, kind] of SUFFIXES.filter(([, each]) => kinds.has(each))) {
          const found = await findSignature(source, [suffix, kind], access, options);
          if ('missing' in found) {
            reasons.push(found.missing);
            continue;
          }
          try {
            checks.push(explained(found, await createCheck(found, keys, options, onValid)));
          } catch (error) {
            if (!(error instanceof SignatureProblem)) throw error;
            wrong ??= explain(found, error);
          }
        }
      } catch (error) {
        for (const check of checks) check.close();
        throw error;
      }
      if (checks.length > 0) return anyOf(checks);
      throw wrong ?? unsigned(source, reasons);
    },
  };
}

/**
 * Accepts when one check accepts: another signature beside a valid one does not matter. Fails with
 * the first failure.
 */
function anyOf(checks: readonly ContentCheck[]): ContentCheck {
  return {
    write: async (chunk) => {
      for (const check of checks) await check.write(chunk);
    },
    close: () => {
      for (const check of checks) check.close();
    },
    finish: async () => {
      const ends = await Promise.allSettled(checks.map((check) => check.finish()));
      if (ends.some(({ status }) => status === 'fulfilled')) return;
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
    },
  };
}

async function createCheck(
  { kind, bytes }: Found,
  keys: readonly (readonly [string, ImageKey])[],
  { gpgv }: SignaturesOptions,
  onValid: (key: string) => void,
): Promise<ContentCheck> {
  if (kind === 'openpgp') {
    const rings = keys.map(([, key]) => key).filter((key): key is OpenpgpKey => key.kind === kind);
    return startGpgv(rings, parseOpenpgpSignature(bytes), gpgv, (fingerprint) =>
      onValid(`openpgp:${fingerprint}`),
    );
  }
  const named = keys.filter((entry): entry is [string, MinisignKey] => entry[1].kind === kind);
  const signature = parseMinisignSignature(bytes.toString('utf8'));
  requireNamedKey(signature, new Map(named));
  return createDigestCheck('blake2b512', (digest) => {
    const [, { publicKey }] = verifyMinisign(signature, new Map(named), digest);
    onValid(`minisign:${publicKey}`);
  });
}

/** Reads the signature with this suffix beside a source, or returns the reason for its absence. */
async function findSignature(
  source: string,
  [suffix, kind]: readonly [suffix: string, kind: Kind],
  access: SignatureAccess,
  options: SignaturesOptions,
): Promise<Found | { readonly missing: string }> {
  const parsed = parseSource(source);
  if (parsed === undefined) throw new Error('a source that was checked can no longer be read');
  try {
    const bytes = await fetchBeside(parsed, suffix, access, options);
    return { kind, shown: redactSource(source) + suffix, bytes };
  } catch (error) {
    access.signal.throwIfAborted();
    if (!isAppError(error) && !(error instanceof TooLong)) throw error;
    const { cause } = error;
    return { missing: `${suffix}: ${messageOf(cause instanceof Error ? cause : error)}` };
  }
}

function unsigned(source: string, reasons: readonly string[]): AppError {
  return new AppError(
    'SIGNATURE_INVALID',
    `${redactSource(source)} has no signature file (${reasons.join('; ')})`,
    {
      details: { source: redactSource(source), reasons },
      hint: 'The cluster has signing keys (gnt-cluster info), so images and packages must be signed: minisign -SHm FILE, or gpg --detach-sign --armor FILE',
    },
  );
}

async function fetchBeside(
  source: Source,
  suffix: string,
  access: SignatureAccess,
  { netrcFile, limits }: SignaturesOptions,
): Promise<Buffer> {
  const { stream } = await openBytes(beside(source, suffix), {
    ...access,
    netrcFile,
    limits: await limits(),
  });
  try {
    return await collect(stream, MAX_SIGNATURE_BYTES);
  } finally {
    stream.destroy();
  }
}

function beside(source: Source, suffix: string): Source {
  if (source.kind === 'path') return { kind: 'path', path: source.path + suffix };
  const url = new URL(source.url);
  url.pathname += suffix;
  return { kind: 'url', url };
}

/** Wraps a check to explain its failure to the operator. */
function explained(found: Found, check: ContentCheck): ContentCheck {
  return {
    write: (chunk) => check.write(chunk),
    close: () => check.close(),
    finish: async () => {
      try {
        await check.finish();
      } catch (error) {
        throw error instanceof SignatureProblem ? explain(found, error) : error;
      }
    },
  };
}

function explain({ shown }: Found, error: SignatureProblem): AppError {
  return new AppError(
    'SIGNATURE_INVALID',
    `the signature ${shown} is not valid: ${error.message}`,
    {
      details: { signature: shown },
      hint: "Compare it with the publisher's. gnt-cluster info shows the configured keys.",
      cause: error,
    },
  );
}
