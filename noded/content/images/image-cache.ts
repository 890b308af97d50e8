import { join } from 'node:path';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { DownloadLimits } from '#shared/contract/download-limits.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { keyOfUrl } from './cache-index.ts';
import { partialName } from './cache-space.ts';
import { ContentStore, type HeldContent } from './content-store.ts';
import { type Checksum, checksumMismatch, digestFile, parseChecksum } from './digest.ts';
import type { SizedFile } from './image-bytes.ts';
import { openLocalImage } from './local-image.ts';
import { keyOfChecksum, type Neighbours, receiveContent } from './neighbours.ts';
import { parseImageSource } from './parse-image-source.ts';
import { abandon, PartialFile } from './partial-file.ts';
import { type DownloadEvent, type Emit, SharedDownloads } from './shared-downloads.ts';
import { throttleProgress } from './throttle-progress.ts';
import type { ByteSource, Validators } from '../downloads/transfer/byte-source.ts';
import { createFtpSource } from '../downloads/transfer/ftp-source.ts';
import { createHttpSource } from '../downloads/transfer/http-source.ts';
import { readNetrc } from '../downloads/transfer/netrc.ts';
import { formatUrl } from '../downloads/transfer/source-url.ts';
import { transfer } from '../downloads/transfer/transfer.ts';

export interface ImageFetchOptions {
  /** `sha256:HEX` or `sha512:HEX` of the file as published. */
  readonly checksum?: string;
  readonly signal: AbortSignal;
  /** Called at most every 100 ms, and at the end. */
  readonly onProgress?: (doneBytes: number, totalBytes: number | null) => void;
  /** Called when this fetch joins a running download, resumes, or retries. */
  readonly onWait?: (message: string) => void;
}

/** A file that is neither evicted nor changed until `release`. */
export interface FetchedImage {
  readonly path: string;
  readonly sizeBytes: number;
  /** Null for a file that is used in place without a SHA-256 to check. */
  readonly sha256: string | null;
  /** @throws AppError IMAGE_UNREADABLE when the file was changed or replaced since `fetch` */
  verifyUnchanged(): Promise<void>;
  /** May be called more than once. */
  release(): void;
}

export interface ImageCacheStats {
  readonly files: number;
  readonly sizeBytes: number;
  readonly downloadsRunning: number;
}

export interface ImageCacheOptions {
  readonly dir: string;
  /** Unused images are evicted, least recently used first, above this limit. */
  readonly maxBytes: number;
  /** The cluster's limits, loaded before each download. */
  readonly limits: () => Promise<DownloadLimits>;
  readonly rateWindowMs?: number | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly netrcFile?: string | undefined;
  readonly retryDelayMs?: number;
  /** Other nodes, which are asked for a content before its server. */
  readonly neighbours?: Neighbours | undefined;
}

interface Attempt {
  readonly cached: Validators | null;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
  readonly emit: Emit;
}

const DEFAULT_RETRY_DELAY_MS = 500;
/** Brings files to this node, from servers and from other nodes. */
export class ImageCache {
  readonly #options: ImageCacheOptions;
  readonly #contents: ContentStore;
  readonly #downloads: SharedDownloads;

  constructor(options: ImageCacheOptions) {
    this.#options = options;
    this.#contents = new ContentStore({
      ...options,
      isDownloading: (key) => this.#downloads.has(key),
    });
    this.#downloads = new SharedDownloads(this.#contents);
  }

  /**
   * Checks that the source is well formed, and that a local file is readable. Sends no request.
   * @param judge called with a local file while it is open
   */
  async check(source: string, judge?: (file: SizedFile) => Promise<void>): Promise<void> {
    const parsed = parseImageSource(source);
    if (parsed.kind !== 'path') return;
    const file = await openLocalImage(parsed.path);
    try {
      await judge?.(file);
    } finally {
      file.release();
    }
  }

  /**
   * Returns the image as a local file. An absolute path is used in place. A URL comes from the
   * cache, or is downloaded once for all callers.
   * @throws AppError IMAGE_SOURCE, IMAGE_NOT_FOUND, IMAGE_UNREADABLE, IMAGE_CHECKSUM_MISMATCH,
   * DOWNLOAD_FAILED, DOWNLOAD_TRUNCATED, DISK_SPACE (refused before the download), DISK_FULL
   * (during it; its bytes are removed), or the signal's reason
   */
  async fetch(source: string, options: ImageFetchOptions): Promise<FetchedImage> {
    options.signal.throwIfAborted();
    const parsed = parseImageSource(source);
    const checksum = options.checksum === undefined ? undefined : parseChecksum(options.checksum);
    return parsed.kind === 'path'
      ? this.#fetchLocal(parsed.path, checksum, options)
      : this.#fetchRemote(parsed.url, checksum, options);
  }

  /** Whether an intact file with that `sha256:HEX` or `sha512:HEX` is cached. */
  async holds(checksum: string): Promise<boolean> {
    const held = await this.findHeld(checksum);
    held?.release();
    return held !== undefined;
  }

  /** Returns an intact cached file with that checksum. @throws AppError IMAGE_SOURCE */
  async findHeld(checksum: string): Promise<HeldContent | undefined> {
    const sha256 = await this.#contents.useByChecksum(parseChecksum(checksum));
    return sha256 === undefined ? undefined : this.#contents.hold(sha256);
  }

  async stats(): Promise<ImageCacheStats> {
    return { ...(await this.#contents.stats()), downloadsRunning: this.#downloads.size };
  }

  /** Ends every download. Their bytes stay for resumption. */
  async close(): Promise<void> {
    await this.#downloads.abort(new AppError('JOB_INTERRUPTED', 'gnt-noded is stopping'));
    await this.#contents.close();
  }

  async #fetchLocal(
    path: string,
    checksum: Checksum | undefined,
    { signal, onProgress }: ImageFetchOptions,
  ): Promise<FetchedImage> {
    const image = await openLocalImage(path);
    try {
      let sha256: string | null = null;
      if (checksum) {
        const report = throttleProgress(this.#options.clock, onProgress);
        const actual = await digestFile(image, checksum.algorithm, {
          signal,
          onBytes: (doneBytes) => report(doneBytes, image.sizeBytes),
        });
        await image.verifyUnchanged();
        if (actual !== checksum.hex) throw checksumMismatch(path, checksum, actual);
        if (checksum.algorithm === 'sha256') sha256 = actual;
      }
      return { ...image, sha256 };
    } catch (error) {
      image.release();
      throw error;
    }
  }

  async #fetchRemote(
    url: URL,
    checksum: Checksum | undefined,
    options: ImageFetchOptions,
  ): Promise<FetchedImage> {
    // A cached content with that checksum needs no server.
    const known = checksum && (await this.#findContent(checksum, options));
    if (known !== undefined) return this.#contents.hold(known);
    const sha256 = await this.#download(url).join(listenerOf(options));
    const image = await this.#contents.hold(sha256);
    try {
      if (checksum) await this.#verify(url, image, checksum, options.signal);
      return image;
    } catch (error) {
      image.release();
      if (isAppError(error, 'IMAGE_CHECKSUM_MISMATCH')) await this.#contents.drop(sha256);
      throw error;
    }
  }

  async #verify(
    url: URL,
    image: HeldContent,
    checksum: Checksum,
    signal: AbortSignal,
  ): Promise<void> {
    const isSha256 = checksum.algorithm === 'sha256';
    const actual = isSha256 ? image.sha256 : await this.#contents.sha512Of(image, signal);
    if (actual !== checksum.hex) throw checksumMismatch(formatUrl(url), checksum, actual);
  }

  /**
   * Returns the SHA-256 of a content of this node, or else of another one. It is used once.
   * @throws the signal's reason
   */
  async #findContent(checksum: Checksum, options: ImageFetchOptions): Promise<string | undefined> {
    const { neighbours, rateWindowMs } = this.#options;
    const cached = await this.#contents.useByChecksum(checksum);
    if (cached !== undefined || neighbours === undefined) return cached;
    const key = keyOfChecksum(checksum);
    const task = this.#downloads.share(key, { host: 'other nodes' }, async (signal, emit) => {
      const limits = await this.#options.limits();
      const partial = this.#openPartial(key, 'from another node', limits, emit);
      return receiveContent(checksum, partial, {
        ...{ neighbours, contents: this.#contents, limits, signal, rateWindowMs },
        logger: this.#options.logger,
        onNode: (message) => emit({ type: 'wait', message }),
        retryDelayMs: this.#options.retryDelayMs ?? DEFAULT_RETRY_DELAY_MS,
      });
    });
    try {
      return await task.join(listenerOf(options));
    } catch (error) {
      options.signal.throwIfAborted();
      // The daemon is stopping.
      if (isAppError(error, 'JOB_INTERRUPTED')) throw error;
      // The server of the image decides about everything else.
      if (!isAppError(error, 'IMAGE_NOT_FOUND')) {
        const reason = messageOf(error);
        this.#options.logger.warn('images.neighbours-failed', { checksum: checksum.hex, reason });
        options.onWait?.(`no other node could send the image, so its server is asked: ${reason}`);
      }
      return undefined;
    }
  }

  #download(url: URL): ReturnType<SharedDownloads['share']> {
    const key = keyOfUrl(url);
    return this.#downloads.share(key, url, (signal, emit) => this.#bring(url, key, signal, emit));
  }

  #openPartial(
    key: string,
    display: string,
    { maxImageBytes }: DownloadLimits,
    emit: Emit,
  ): PartialFile {
    return new PartialFile({
      display,
      maxBytes: maxImageBytes,
      path: join(this.#options.dir, partialName(key)),
      makeRoom: (missingBytes) => this.#contents.makeRoom(missingBytes),
      onProgress: throttleProgress(this.#options.clock, (doneBytes, totalBytes) =>
        emit({ type: 'progress', doneBytes, totalBytes }),
      ),
    });
  }

  /** Downloads an image. @returns its SHA-256; null when the cached one is current */
  async #fill(
    url: URL,
    key: string,
    cached: Validators | null,
    signal: AbortSignal,
    emit: Emit,
  ): Promise<string | null> {
    const limits = await this.#options.limits();
    const partial = this.#openPartial(key, formatUrl(url), limits, emit);
    try {
      if (!cached) await partial.resume(signal);
      if (partial.sizeBytes > 0) {
        emit({ type: 'wait', message: `resuming the download at byte ${partial.sizeBytes}` });
      }
      const outcome = await this.#transfer(url, partial, { cached, limits, signal, emit });
      if (outcome === 'not-modified') return null;
      return await this.#contents.keep(partial, { key, url: formatUrl(url) });
    } catch (error) {
      await abandon(partial, error);
      throw error;
    }
  }

  /** Returns the content's SHA-256, used once. */
  async #bring(url: URL, key: string, signal: AbortSignal, emit: Emit): Promise<string> {
    const location = ownValue((await this.#contents.index()).locations, key);
    const isCached = location !== undefined && (await this.#contents.useIfIntact(location.sha256));
    const cached = isCached ? location : null;
    try {
      const fresh = await this.#fill(url, key, cached, signal, emit);
      if (fresh === null && cached) {
        // One more, for the use that ends below.
        this.#contents.use(cached.sha256, 1);
        return cached.sha256;
      }
      if (fresh === null)
        throw new Error("the server answered 'not modified' to an unconditional request");
      return fresh;
    } finally {
      if (cached) this.#contents.release(cached.sha256);
    }
  }

  async #transfer(
    url: URL,
    partial: PartialFile,
    { cached, limits, signal, emit }: Attempt,
  ): Promise<'not-modified' | 'done'> {
    const { logger, clock, rateWindowMs } = this.#options;
    const display = formatUrl(url);
    const started = clock.monotonicMs();
    const outcome = await transfer({
      source: this.#createSource(url, limits),
      sink: partial,
      offset: partial.sizeBytes,
      validators: cached ?? partial.validators,
      signal,
      limits,
      rateWindowMs,
      retryDelayMs: this.#options.retryDelayMs ?? DEFAULT_RETRY_DELAY_MS,
      onRetry: (message) => {
        logger.warn('images.retry', { url: display, reason: message });
        emit({ type: 'wait', message });
      },
    });
    if (outcome === 'done' && partial.sizeBytes === 0) {
      throw new AppError('DOWNLOAD_FAILED', `cannot use ${display}: it is empty`, {
        hint: 'Check the URL.',
      });
    }
    const durationMs = Math.round(clock.monotonicMs() - started);
    const { sizeBytes } = partial;
    logger.info('images.fetched', { url: display, outcome, sizeBytes, durationMs });
    return outcome;
  }

  #createSource(url: URL, { certificateAuthority, remoteHosts }: DownloadLimits): ByteSource {
    const { netrcFile } = this.#options;
    const netrc = readNetrc(netrcFile);
    const common = { url, netrc, remoteHosts };
    if (url.protocol === 'ftp:') return createFtpSource(common);
    return createHttpSource({ ...common, certificateAuthority });
  }
}

function listenerOf({ signal, onWait, onProgress }: ImageFetchOptions) {
  return {
    signal,
    onEvent: (event: DownloadEvent): void => {
      if (event.type === 'wait') onWait?.(event.message);
      else onProgress?.(event.doneBytes, event.totalBytes);
    },
  };
}
