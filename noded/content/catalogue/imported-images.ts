import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type Checksum, checksumMismatch, digestFile } from '../images/digest.ts';
import { openLocalImage } from '../images/local-image.ts';

const RESERVE_BYTES = 256 * MIB;

export interface TakenCopy extends AsyncDisposable {
  readonly sha256: string;
  readonly sizeBytes: number;
  keep(): Promise<void>;
}

/** Imported images: a file each, named by the SHA-256 of its content and never evicted. */
export function createImportedImages(dir: string) {
  const pathOf = (sha256: string): string => join(dir, `sha256-${sha256}`);
  /** Unfinished copies, which `keepOnly` must not remove. */
  const halves = new Set<string>();
  const names = async (): Promise<string[]> => {
    try {
      return await readdir(dir);
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return [];
      throw error;
    }
  };
  return {
    pathOf,
    /**
     * Copies a file of this node, sharing its blocks where the file system can. Disposing of the
     * result removes the copy, unless it was kept.
     * @throws AppError IMAGE_*, DISK_SPACE, DISK_FULL
     */
    async take(path: string, checksum: Checksum | null, signal: AbortSignal): Promise<TakenCopy> {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const name = `half-${randomUUID()}`;
      const half = join(dir, name);
      const drop = async (): Promise<void> => {
        await rm(half, { force: true });
        halves.delete(name);
      };
      const image = await openLocalImage(path);
      try {
        await requireRoom(dir, image.sizeBytes);
        halves.add(name);
        await copyFile(image.path, half, constants.COPYFILE_FICLONE);
        await image.verifyUnchanged();
        const copy = { path: half, sizeBytes: image.sizeBytes };
        const sha256 = await digestFile(copy, 'sha256', { signal });
        await requireChecksum(copy, sha256, checksum, path, signal);
        await syncPath(half);
        return {
          sha256,
          sizeBytes: image.sizeBytes,
          [Symbol.asyncDispose]: drop,
          async keep() {
            await rename(half, pathOf(sha256));
            await syncPath(dir);
          },
        };
      } catch (error) {
        await drop();
        throw nameDiskFull(error);
      } finally {
        image.release();
      }
    },
    /**
     * Removes all others, and left-overs of a killed daemon.
     * @param listPaths further files that stay; called only when there are others
     */
    async keepOnly(
      sha256s: ReadonlySet<string>,
      listPaths: () => Promise<ReadonlySet<string>>,
    ): Promise<void> {
      const wanted = new Set([...sha256s].map(pathOf));
      const found = (await names()).filter((name) => !wanted.has(join(dir, name)));
      if (found.length === 0) return;
      const paths = await listPaths();
      for (const name of found)
        // `halves` is read after the wait, in which other copies may have begun.
        if (!paths.has(join(dir, name)) && !halves.has(name))
          await rm(join(dir, name), { force: true });
    },
    list: async (): Promise<string[]> =>
      (await names()).flatMap((name) => /^sha256-([0-9a-f]{64})$/.exec(name)?.[1] ?? []),
  };
}

async function requireRoom(dir: string, sizeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir);
  if (bavail * bsize >= sizeBytes + RESERVE_BYTES) return;
  throw new AppError('DISK_SPACE', `${dir} has no room for an image of ${sizeBytes} bytes`, {
    details: { freeBytes: bavail * bsize, sizeBytes },
    hint: 'Free space there, or remove imported images: gnt-image remove NAME',
  });
}

async function requireChecksum(
  copy: { readonly path: string; readonly sizeBytes: number },
  sha256: string,
  checksum: Checksum | null,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  if (checksum === null) return;
  const actual =
    checksum.algorithm === 'sha256' ? sha256 : await digestFile(copy, 'sha512', { signal });
  if (actual !== checksum.hex) throw checksumMismatch(path, checksum, actual);
}
