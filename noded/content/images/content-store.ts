import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { type CacheIndex, loadIndex, saveIndex } from './cache-index.ts';
import {
  contentName,
  ensureSpace,
  evictTo,
  forget,
  hasSpace,
  takeUnlisted,
  type SpaceOptions,
  usedBytes,
} from './cache-space.ts';
import { type Checksum, digestFile } from './digest.ts';
import type { PartialFile } from './partial-file.ts';

export interface ContentStoreOptions {
  readonly dir: string;
  readonly maxBytes: number;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Whether a download with that key runs, whose partial file must stay. */
  readonly isDownloading: (key: string) => boolean;
}

/** A content that is not removed while it is held. */
export interface HeldContent {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  verifyUnchanged(): Promise<void>;
  release(): void;
}

/**
 * Stores contents as `<dir>/sha256-<hex>`, partial downloads as `partial-<key>`, and origins in
 * `index.json`.
 * - INVARIANTS: only unused contents are evicted; a file named `sha256-…` is complete; adding and
 *   removing files is serialized.
 */
export class ContentStore {
  readonly #options: ContentStoreOptions;
  readonly #uses = new Map<string, number>();
  readonly #turns = new SerialQueue<'files'>();
  #opening: Promise<CacheIndex> | undefined;

  constructor(options: ContentStoreOptions) {
    this.#options = options;
  }

  index(): Promise<CacheIndex> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Uses an intact content with that checksum. @returns its SHA-256 */
  async useByChecksum({ algorithm, hex }: Checksum): Promise<string | undefined> {
    const { contents } = await this.index();
    const sha256 =
      algorithm === 'sha256'
        ? hex
        : Object.entries(contents).find(([, { sha512 }]) => sha512 === hex)?.[0];
    return sha256 !== undefined && (await this.useIfIntact(sha256)) ? sha256 : undefined;
  }

  /**
   * Uses a content if it is intact. It counts as used before the check, so that it is not evicted
   * in between.
   * @returns whether it is used
   */
  async useIfIntact(sha256: string): Promise<boolean> {
    this.use(sha256, 1);
    let isIntact = false;
    try {
      isIntact = await this.#isIntact(sha256);
    } finally {
      if (!isIntact) this.release(sha256);
    }
    return isIntact;
  }

  /**
   * Whether a content still has its recorded size and time. Otherwise verifies its bytes, and drops
   * it when they differ.
   */
  async #isIntact(sha256: string): Promise<boolean> {
    const index = await this.index();
    const content = ownValue(index.contents, sha256);
    if (!content) return false;
    const path = this.pathOf(sha256);
    const found = await statOrUndefined(path);
    if (found?.size === content.sizeBytes && found.mtimeMs === content.mtimeMs) return true;
    const isSame =
      found?.size === content.sizeBytes &&
      (await digestFile({ path, sizeBytes: found.size }, 'sha256')) === sha256;
    if (isSame) {
      content.mtimeMs = found.mtimeMs;
      return true;
    }
    this.#options.logger.warn('images.damaged', { sha256 });
    delete index.contents[sha256];
    // A file outside the index takes uncounted space. A complete one may have arrived meanwhile.
    void this.#inTurn(async () => {
      if (ownValue(index.contents, sha256) === undefined) await rm(path, { force: true });
    }).catch((error: unknown) => this.#options.logger.warn('images.left', { err: error }));
    return false;
  }

  pathOf(sha256: string): string {
    return join(this.#options.dir, contentName(sha256));
  }

  /**
   * Takes in a complete download, used once.
   * @param origin its URL for messages, with `keyOfUrl`; null if it has none
   */
  keep(
    partial: PartialFile,
    origin: { readonly key: string; readonly url: string } | null,
  ): Promise<string> {
    return this.#inTurn(async () => {
      const { dir, clock } = this.#options;
      const { sizeBytes } = partial;
      const index = await this.index();
      const validators = partial.validators ?? { etag: null, lastModified: null };
      const sha256 = await partial.finish((hex) => this.pathOf(hex));
      this.use(sha256, 1);
      await syncPath(dir);
      const { mtimeMs } = await stat(this.pathOf(sha256));
      const sha512 = ownValue(index.contents, sha256)?.sha512 ?? null;
      setOwn(index.contents, sha256, { sizeBytes, mtimeMs, sha512, lastUsedMs: clock.now() });
      if (origin !== null)
        setOwn(index.locations, origin.key, { url: origin.url, sha256, ...validators });
      await saveIndex(dir, index);
      return sha256;
    });
  }

  async sha512Of(image: HeldContent, signal: AbortSignal): Promise<string> {
    const content = ownValue((await this.index()).contents, image.sha256);
    const known = content?.sha512 ?? (await digestFile(image, 'sha512', { signal }));
    if (content) content.sha512 = known;
    return known;
  }

  /** Counts uses. Each needs a `release`. */
  use(sha256: string, times: number): void {
    if (times > 0) this.#uses.set(sha256, (this.#uses.get(sha256) ?? 0) + times);
  }

  release(sha256: string): void {
    const left = (this.#uses.get(sha256) ?? 0) - 1;
    if (left > 0) {
      this.#uses.set(sha256, left);
      return;
    }
    this.#uses.delete(sha256);
    this.#evict().catch((error: unknown) =>
      this.#options.logger.error('images.evict-failed', { reason: messageOf(error) }),
    );
  }

  /** Returns a handle for a use that is counted already. */
  async hold(sha256: string): Promise<HeldContent> {
    const content = ownValue((await this.index()).contents, sha256);
    if (!content) throw new Error(`content ${sha256} is not in the index`);
    content.lastUsedMs = this.#options.clock.now();
    const path = this.pathOf(sha256);
    let isReleased = false;
    return {
      path,
      sizeBytes: content.sizeBytes,
      sha256,
      verifyUnchanged: async () => {
        const found = await statOrUndefined(path);
        if (found?.size === content.sizeBytes && found.mtimeMs === content.mtimeMs) return;
        throw new AppError('IMAGE_UNREADABLE', `${path} in the image cache was changed`, {
          hint: 'Reinstall: the image is downloaded again.',
        });
      },
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.release(sha256);
      },
    };
  }

  /** Drops an unused content. */
  drop(sha256: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isInUse(contentName(sha256))) return;
      const index = await this.index();
      await forget(this.#options.dir, index, sha256);
      await saveIndex(this.#options.dir, index);
    });
  }

  /**
   * Makes room for a running download, within the limit of the cache.
   * @throws AppError DISK_SPACE
   */
  async makeRoom(missingBytes: number): Promise<void> {
    // The usual case needs no turn: others may hold theirs while a large file is synced.
    if (await hasSpace(missingBytes, await this.#space())) return;
    return this.#inTurn(async () => {
      const space = await this.#space();
      await ensureSpace(missingBytes, space);
      await saveIndex(this.#options.dir, space.index);
    });
  }

  async stats(): Promise<{ readonly files: number; readonly sizeBytes: number }> {
    const index = await this.index();
    const { dir } = this.#options;
    return { files: Object.keys(index.contents).length, sizeBytes: await usedBytes(dir, index) };
  }

  async #space(): Promise<SpaceOptions> {
    const { dir, maxBytes, clock } = this.#options;
    const index = await this.index();
    return { dir, index, isInUse: this.#isInUse, maxBytes, nowMs: clock.now() };
  }

  close(): Promise<void> {
    return this.#inTurn(() => Promise.resolve());
  }

  #evict(): Promise<void> {
    return this.#inTurn(async () => {
      const space = await this.#space();
      const { dir, index, maxBytes } = space;
      const { logger } = this.#options;
      const freedBytes = await evictTo(maxBytes, space);
      if (freedBytes > 0) logger.info('images.evicted', { freedBytes });
      await saveIndex(dir, index);
    });
  }

  readonly #isInUse = (name: string): boolean => {
    const [kind, key = ''] = name.split('-');
    return kind === 'partial' ? this.#options.isDownloading(key) : this.#uses.has(key);
  };

  async #open(): Promise<CacheIndex> {
    const { dir, logger, clock } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const index = await loadIndex(dir, logger);
    await takeUnlisted(dir, index);
    // Removes partial files that are too old or too many. The size limit applies from the first use
    // on.
    const maxBytes = Number.POSITIVE_INFINITY;
    await evictTo(maxBytes, { dir, index, isInUse: this.#isInUse, maxBytes, nowMs: clock.now() });
    return index;
  }

  /** Serializes work. A failure does not affect the next turn. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run('files', work);
  }
}

async function statOrUndefined(
  path: string,
): Promise<{ readonly size: number; readonly mtimeMs: number } | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
