import { createHash } from 'node:crypto';
import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import type { Logger } from '#shared/log/log.ts';
import { KIB } from '#shared/units/bytes.ts';
import type { ByteSource } from '../downloads/transfer/byte-source.ts';
import { transfer } from '../downloads/transfer/transfer.ts';
import type { ContentStore } from './content-store.ts';
import { type Checksum, checksumMismatch } from './digest.ts';
import { abandon, type PartialFile } from './partial-file.ts';

/** Other nodes of the cluster, which may hold a content. */
export interface Neighbours {
  /**
   * Returns a content as a source, which asks another node in each attempt. `open` throws AppError
   * IMAGE_NOT_FOUND when no node has it, and NODE_UNREACHABLE when no further one has it.
   * @param onNode called with the name of each node whose bytes are read
   */
  sourceOf(checksum: string, onNode: (node: string) => void): ByteSource;
}

/** A slower node is given up, since the server of the image may be faster. */
const MIN_RATE = 256 * KIB;
const RATE_WINDOW_MS = 10_000;

export interface ReceiveOptions {
  readonly neighbours: Neighbours;
  readonly contents: ContentStore;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly onNode: (message: string) => void;
  readonly rateWindowMs?: number | undefined;
  readonly retryDelayMs: number;
}

/** Returns the name of a content's partial file. No URL has the same one. */
export function keyOfChecksum(checksum: Checksum): string {
  return createHash('sha256').update(formatChecksum(checksum)).digest('hex');
}

function formatChecksum({ algorithm, hex }: Checksum): string {
  return `${algorithm}:${hex}`;
}

/**
 * Receives a content from other nodes. A node that stops is replaced by the next one, which
 * continues at the same byte.
 * @returns its SHA-256, used once
 * @throws AppError IMAGE_NOT_FOUND, NODE_UNREACHABLE; IMAGE_CHECKSUM_MISMATCH for other bytes,
 * which are removed; the errors of `transfer` and `partial`
 */
export async function receiveContent(
  checksum: Checksum,
  partial: PartialFile,
  options: ReceiveOptions,
): Promise<string> {
  const { neighbours, contents, limits, signal, onNode } = options;
  const { rateWindowMs = RATE_WINDOW_MS, retryDelayMs } = options;
  const senders: string[] = [];
  try {
    await partial.resume(signal);
    await transfer({
      source: neighbours.sourceOf(formatChecksum(checksum), (node) => {
        senders.push(node);
        const from = partial.sizeBytes === 0 ? '' : ` from byte ${partial.sizeBytes} on`;
        onNode(`node '${node}' has the image and sends it${from}`);
      }),
      sink: partial,
      offset: partial.sizeBytes,
      validators: partial.validators,
      signal,
      limits: { ...limits, minRate: Math.max(limits.minRate, MIN_RATE) },
      rateWindowMs,
      retryDelayMs,
      onRetry: onNode,
    });
    const sha256 = await contents.keep(partial, null);
    await requireContent(checksum, sha256, senders, options);
    const { sizeBytes } = partial;
    options.logger.info('images.received', { sha256, sizeBytes, nodes: senders });
    return sha256;
  } catch (error) {
    await abandon(partial, error);
    throw error;
  }
}

/** Removes a content with another checksum. Otherwise it stays used once. */
async function requireContent(
  checksum: Checksum,
  sha256: string,
  senders: readonly string[],
  { contents, signal }: ReceiveOptions,
): Promise<void> {
  const held = await contents.hold(sha256);
  try {
    const actual = checksum.algorithm === 'sha256' ? sha256 : await contents.sha512Of(held, signal);
    if (actual !== checksum.hex)
      throw checksumMismatch(`the content from ${senders.join(' and ')}`, checksum, actual);
    contents.use(sha256, 1);
  } catch (error) {
    held.release();
    await contents.drop(sha256);
    throw error;
  } finally {
    held.release();
  }
}
