import { type CatalogueEntry, fileNameOf } from '#shared/contract/image-catalogue.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { MIB } from '#shared/units/bytes.ts';
import { readArmor } from '../signatures/armor.ts';
import { readThrough } from '../signatures/content-check.ts';
import {
  type GpgvOptions,
  MAX_SIGNATURE_BYTES,
  parseOpenpgpSignature,
  startGpgv,
} from '../signatures/gpgv.ts';
import { SignatureProblem } from '../signatures/signature-problem.ts';
import type { FetchSmall } from './fetch-small.ts';

export interface PublisherOptions {
  readonly fetchSmall: FetchSmall;
  readonly gpgv: GpgvOptions;
}

export interface Published {
  readonly checksum: string;
  /** True when a configured key signed it. Otherwise https alone vouches for it. */
  readonly isSigned: boolean;
}

/** The list of a release has some hundred lines. */
const MAX_LIST_BYTES = MIB;
const MAX_KEYRING_BYTES = MIB;

/**
 * Asks a publisher for the current checksum of an image.
 * @param keys from `readKeys`; null: https alone vouches for the list
 * @throws AppError DOWNLOAD_FAILED, SIGNATURE_INVALID, CATALOGUE_INVALID when the list lacks the
 * image
 */
export async function askPublisher(
  { url, checksums, signature }: CatalogueEntry & { readonly checksums: string },
  keys: Buffer | null,
  { fetchSmall, gpgv }: PublisherOptions,
  signal: AbortSignal,
): Promise<Published> {
  const list = await fetchSmall(checksums, MAX_LIST_BYTES, signal);
  if (signature !== null && keys !== null) {
    const bytes = await fetchSmall(signature, MAX_SIGNATURE_BYTES, signal);
    await requireSigned({ list, keys, bytes, signature, signal }, gpgv);
  }
  const fileName = fileNameOf(url);
  const checksum = findPublishedChecksum(list.toString('utf8'), fileName);
  if (checksum === undefined)
    throw new AppError('CATALOGUE_INVALID', `${checksums} lists no checksum of '${fileName}'`, {
      details: { checksums, fileName },
      hint: 'The publisher may have moved the image: run gnt-image update, or import a file that you checked with gnt-image import',
    });
  return { checksum, isSigned: signature !== null && keys !== null };
}

/**
 * Reads the keys that sign the checksum list; null when the catalogue names none.
 * @param mayLack allows a missing file: built-in entries name keyrings of optional Debian packages
 * @throws AppError SIGNATURE_INVALID when the file is missing or unreadable
 */
export async function readKeys(
  { keyring }: CatalogueEntry,
  mayLack: boolean,
): Promise<Buffer | null> {
  if (keyring === null) return null;
  try {
    const bytes = await readBounded(keyring, MAX_KEYRING_BYTES);
    return readArmor(bytes.toString('latin1'), 'PUBLIC KEY BLOCK') ?? bytes;
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === undefined) throw error;
    if (mayLack && code === 'ENOENT') return null;
    throw new AppError('SIGNATURE_INVALID', `the keyring ${keyring} cannot be read: ${code}`, {
      details: { keyring },
      hint: 'Nothing is accepted without this keyring: install it, or correct the catalogue.',
      cause: error,
    });
  }
}

interface Signed {
  readonly list: Buffer;
  readonly keys: Buffer;
  readonly bytes: Buffer;
  readonly signature: string;
  readonly signal: AbortSignal;
}

async function requireSigned(
  { list, keys, bytes, signature, signal }: Signed,
  gpgv: GpgvOptions,
): Promise<void> {
  try {
    const key = { kind: 'openpgp', keyring: keys.toString('base64') } as const;
    const check = await startGpgv([key], parseOpenpgpSignature(bytes), gpgv);
    await readThrough(once(list), [check], signal);
  } catch (error) {
    if (!(error instanceof SignatureProblem)) throw error;
    throw new AppError(
      'SIGNATURE_INVALID',
      `the signature ${signature} is not valid: ${error.message}`,
      {
        details: { signature },
        hint: 'Nothing was installed from that list. Try again later, or ask the publisher.',
        cause: error,
      },
    );
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const SHORTEST_LINE = 64;

/**
 * Finds the checksum of a file in a published list. Lines are those of sha256sum and sha512sum
 * (`HEX NAME`, `HEX *NAME`) or have the algorithm in front (`SHA256 (NAME) = HEX`). Prefers
 * SHA-512. Pure.
 * @returns `sha256:HEX` or `sha512:HEX`; undefined when the file is missing, or listed with
 * different checksums
 */
export function findPublishedChecksum(list: string, fileName: string): string | undefined {
  const found: string[] = [];
  // Does not extract short lines: a list may be a million empty lines.
  for (let start = 0; start < list.length;) {
    const next = list.indexOf('\n', start);
    const end = next === -1 ? list.length : next;
    const isLong = end - start > SHORTEST_LINE + fileName.length;
    if (isLong) found.push(...checksumIn(list.slice(start, end), fileName));
    start = end + 1;
  }
  const strongest = found.some((one) => one.startsWith('sha512:')) ? 'sha512:' : 'sha256:';
  const [first, ...others] = new Set(found.filter((one) => one.startsWith(strongest)));
  return others.length === 0 ? first : undefined;
}

function checksumIn(line: string, fileName: string): string[] {
  const [, hex, name] = /^([0-9a-fA-F]{64,128})\s+\*?(?:\.\/)?(\S+)\r?$/.exec(line) ?? [];
  if (hex !== undefined && name === fileName) return named(hex);
  const [, tagged, value] = /^(?:SHA256|SHA512) \((\S+)\) = ([0-9a-fA-F]+)\r?$/.exec(line) ?? [];
  return value !== undefined && tagged === fileName ? named(value) : [];
}

const ALGORITHMS: Readonly<Record<number, string>> = { 64: 'sha256', 128: 'sha512' };

function named(hex: string): string[] {
  const algorithm = ALGORITHMS[hex.length];
  return algorithm === undefined ? [] : [`${algorithm}:${hex.toLowerCase()}`];
}
