import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { MovedFile } from '#shared/contract/move.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncFlatDirectory, syncPath } from '#shared/files/durable.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { dropCached } from '#shared/sys/files.ts';
import { copyDir, dropCopy } from './copy-disks.ts';
import { writeBatch } from './data-blocks.ts';
import { digestFile } from './file-digests.ts';
import { holdImages } from './hold-images.ts';
import type { InstanceDisks } from './instance-disks.ts';
import { listNames, takenBytes } from './install-disks.ts';

/**
 * The disks of an instance whose record moves to another node. The record decides: if it names this
 * node, the disks get their name back, otherwise they are removed.
 */
const LEAVING = /^leaving-([0-9a-f-]{36})$/;

/** Codes of a full disk or quota. */
const FULL = ['ENOSPC', 'EDQUOT'];
/** Codes of a broken disk, a damaged file system, and its switch to read-only. */
const FAULTY = ['EIO', 'EUCLEAN', 'EROFS'];

/** Moves the files of an instance to another node, or from one. */
export interface MovingDisks {
  /**
   * Locks the files of a stopped instance until the result is disposed of.
   * @throws AppError DISK_IN_USE, DISK_MISSING; INSTANCE_STATE: its folder holds other files;
   * NOT_SUPPORTED for a symbolic link
   */
  depart(instance: InstanceRecord): Promise<Departure>;
  /**
   * Prepares the departure of a running instance, whose content QEMU copies.
   * @throws AppError INSTANCE_STATE: its folder holds other files
   */
  departRunning(instance: InstanceRecord): Promise<Pick<Departure, 'leave'> & Disposable>;
  /** Returns the UUIDs of instances whose departure a job or daemon did not finish. */
  listLeaving(): Promise<readonly string[]>;
  /**
   * Gives the folder its name back. Does nothing without a folder.
   * @throws AppError CONFLICT while newer disks of the instance arrive here
   */
  comeBack(uuid: string): Promise<void>;
  /** Removes disks that have moved to another node. Does nothing without them. */
  removeLeft(uuid: string): Promise<void>;
  /**
   * Creates empty files of these sizes in the folder of an unfinished copy.
   * @throws AppError CONFLICT (the instance has disks here, or a job still removes some), DISK_FULL
   */
  arrive(uuid: string, files: readonly MovedFile[]): Promise<Arrival>;
  /**
   * Works on a copy that no job uses, and keeps arrivals of the instance from beginning meanwhile.
   */
  whileNobodys(uuid: string, work: () => Promise<unknown>): Promise<void>;
  /** Returns true until the arrival is disposed of; its job may still write. */
  isArriving(uuid: string): boolean;
}

export interface DepartingFile extends MovedFile {
  /** Bytes that it occupies, which is the most that is read. */
  readonly takenBytes: number;
  readonly file: FileHandle;
}

export interface Departure extends AsyncDisposable {
  readonly files: readonly DepartingFile[];
  /** Marks the files as leaving: from now on the record decides over them. */
  leave(): Promise<void>;
}

export interface Arrival extends AsyncDisposable {
  /** Returns the path of a file of the arrival. */
  pathOf(name: string): string;
  /** Makes the content survive a power cut. @throws AppError DISK_FULL */
  sync(): Promise<void>;
  /** @throws AppError VALIDATION, DISK_FULL; NOT_FOUND once they are complete */
  write(name: string, message: Buffer): Promise<void>;
  /**
   * Syncs all files, reads them again from the disk and compares digests. Later writes are refused.
   * @throws AppError DISK_FULL; CONFLICT if the content differs
   */
  verify(digests: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>;
}

export function createMovingDisks(
  disksDir: string,
  disks: Pick<InstanceDisks, 'activate' | 'settle' | 'variablesPathOf' | 'seedPathOf'>,
): MovingDisks {
  const leavingDir = (uuid: string): string => join(disksDir, `leaving-${uuid}`);
  /** Instances with a running job. Only that job decides over their files. */
  const departing = new Set<string>();
  const arriving = new Set<string>();
  const beginning = new SerialQueue<string>();
  const leave = async (uuid: string): Promise<void> => {
    await rename(join(disksDir, uuid), leavingDir(uuid)).catch(passMissing);
    await syncPath(disksDir);
  };
  return {
    depart: async (instance) => {
      await disks.settle(instance);
      const paths = (await disks.activate(instance)).map(({ path }) => path);
      const variables = disks.variablesPathOf(instance);
      if (await isThere(variables)) paths.push(variables);
      await using held = new AsyncDisposableStack();
      const dir = join(disksDir, instance.uuid);
      held.use(await holdImages(dir));
      const known = [...paths, disks.seedPathOf(instance)];
      await refuseOthers(instance.name, dir, known);
      const files: DepartingFile[] = [];
      for (const path of paths) {
        const file = held.use(await openDeparting(path));
        const { size: sizeBytes } = await file.stat();
        const name = path.slice(path.lastIndexOf('/') + 1);
        files.push({ name, sizeBytes, takenBytes: await takenBytes(path), file });
      }
      departing.add(instance.uuid);
      held.defer(() => void departing.delete(instance.uuid));
      const all = held.move();
      return {
        files,
        leave: () => leave(instance.uuid),
        [Symbol.asyncDispose]: () => all.disposeAsync(),
      };
    },
    departRunning: async (instance) => {
      const { uuid } = instance;
      const known = (await disks.activate(instance)).map(({ path }) => path);
      await refuseOthers(instance.name, join(disksDir, uuid), known);
      departing.add(uuid);
      return {
        leave: () => leave(uuid),
        [Symbol.dispose]: () => void departing.delete(uuid),
      };
    },
    listLeaving: async () =>
      (await readdir(disksDir))
        .flatMap((name) => LEAVING.exec(name)?.[1] ?? [])
        .filter((uuid) => !departing.has(uuid)),
    comeBack: async (uuid) => {
      const newer = copyDir(disksDir, uuid);
      if ((await isThere(leavingDir(uuid))) && (await isThere(newer)))
        throw newerAreHere(leavingDir(uuid), newer);
      await rename(leavingDir(uuid), join(disksDir, uuid)).catch(passMissing);
      await syncPath(disksDir);
    },
    removeLeft: async (uuid) => {
      await rm(leavingDir(uuid), { recursive: true, force: true });
      await syncPath(disksDir);
    },
    arrive: (uuid, files) =>
      beginning.run(uuid, async () => {
        if (await isThere(join(disksDir, uuid))) throw disksAreHere(join(disksDir, uuid));
        // After a kill, the old disks could be taken for the only ones.
        if (await isThere(leavingDir(uuid))) throw stillLeaving(leavingDir(uuid));
        await using held = new AsyncDisposableStack();
        arriving.add(uuid);
        held.defer(() => void arriving.delete(uuid));
        const arrival = held.use(await fillFiles(disksDir, uuid, files));
        const all = held.move();
        return { ...arrival, [Symbol.asyncDispose]: () => all.disposeAsync() };
      }),
    whileNobodys: (uuid, work) =>
      beginning.run(uuid, async () => {
        if (!arriving.has(uuid)) await work();
      }),
    isArriving: (uuid) => arriving.has(uuid),
  };
}

async function refuseOthers(
  instance: string,
  dir: string,
  known: readonly string[],
): Promise<void> {
  const others = (await listNames(dir)).filter((name) => !known.includes(join(dir, name)));
  if (others.length > 0) throw wouldBeLost(instance, dir, others);
}

async function openDeparting(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (systemCodeOf(error) !== 'ELOOP') throw error;
    throw new AppError('NOT_SUPPORTED', `${path} is a symbolic link and cannot be moved`, {
      details: { path },
      hint: 'Replace the link by the file it points to, and repeat the move.',
      cause: error,
    });
  }
}

async function fillFiles(
  disksDir: string,
  uuid: string,
  files: readonly MovedFile[],
): Promise<Arrival> {
  const dir = copyDir(disksDir, uuid);
  await using undo = new AsyncDisposableStack();
  const opened = new Map<string, { readonly sizeBytes: number; readonly file: FileHandle }>();
  try {
    await mkdir(dir, { mode: 0o700 });
    for (const { name, sizeBytes } of files) {
      const file = undo.use(await open(join(dir, name), 'wx+', 0o600));
      await file.truncate(sizeBytes);
      opened.set(name, { sizeBytes, file });
    }
  } catch (error) {
    await dropCopy(disksDir, uuid);
    throw tellDisk(error, disksDir);
  }
  const all = undo.move();
  let verified: Readonly<Record<string, string>> | undefined;
  const sync = async (): Promise<void> => {
    try {
      await syncFlatDirectory(dir);
      await syncPath(disksDir);
    } catch (error) {
      throw tellDisk(error, disksDir);
    }
  };
  return {
    pathOf: (name) => join(dir, name),
    sync,
    write: async (name, message) => {
      if (verified !== undefined) throw areWhole(uuid);
      const found = opened.get(name);
      if (found === undefined)
        throw new AppError('VALIDATION', `'${name}' is not one of its files`);
      try {
        await writeBatch(found.file, message, found.sizeBytes);
      } catch (error) {
        throw tellDisk(error, disksDir);
      }
    },
    verify: async (digests, signal) => {
      await sync();
      for (const [name, { file }] of opened) {
        const sent = ownValue(digests, name);
        const digest =
          verified === undefined
            ? await digestStored(file, sent, signal).catch((error: unknown) => {
                throw tellDisk(error, disksDir);
              })
            : ownValue(verified, name);
        if (digest === sent) continue;
        throw new AppError('CONFLICT', `${name} arrived damaged`, {
          details: { name },
          hint: 'Nothing was changed. Look for faulty disks or memory in the kernel logs of both nodes, and repeat the move.',
        });
      }
      verified ??= digests;
      await all.disposeAsync();
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Reads from the disk: the page cache would only show the received bytes. */
function digestStored(
  file: FileHandle,
  sent: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  dropCached(file.fd);
  return digestFile(file, sent, signal);
}

/** An instance without disks has no folder. */
function passMissing(error: unknown): void {
  if (systemCodeOf(error) !== 'ENOENT') throw error;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

function disksAreHere(path: string): AppError {
  return new AppError('CONFLICT', `this instance already has disks here: ${path}`, {
    details: { path },
    hint: 'Its record names another node. Inspect these disks and move them away.',
  });
}

/** The folder with all its content is removed after the departure. */
function wouldBeLost(name: string, path: string, files: readonly string[]): AppError {
  const listed = files.join(', ');
  return new AppError(
    'INSTANCE_STATE',
    `${path} holds files that are not disks of '${name}': ${listed}`,
    {
      details: { path, files: [...files] },
      hint: 'A move would remove them. Inspect them and move them away first.',
    },
  );
}

function areWhole(uuid: string): AppError {
  return new AppError('NOT_FOUND', `the disks of ${uuid} are complete: refusing further writes`, {
    hint: 'Repeat the move.',
  });
}

function stillLeaving(path: string): AppError {
  return new AppError(
    'CONFLICT',
    `the disks of this instance are still leaving this node: ${path}`,
    {
      details: { path },
      hint: 'The job that moved them removes them when it ends (gnt-job list). Repeat the command then.',
    },
  );
}

function newerAreHere(path: string, newer: string): AppError {
  return new AppError('CONFLICT', `${path} is older than the file that arrived in ${newer}`, {
    details: { path, newer },
    hint: 'Nothing was changed. Compare both and move the older one away.',
  });
}

/** Names the disk of an error, which another node shows. */
function tellDisk(error: unknown, dir: string): unknown {
  const code = systemCodeOf(error) ?? '';
  if (FAULTY.includes(code))
    return new AppError(
      'MIGRATION_FAILED',
      `the disks did not arrive in ${dir}: ${messageOf(error)}`,
      {
        details: { path: dir },
        hint: 'Look for faulty disks in the kernel log of that node, and repeat the move.',
        cause: error,
      },
    );
  if (!FULL.includes(code)) return error;
  return new AppError('DISK_FULL', `${dir} is full: the disks did not arrive`, {
    hint: 'Remove instances or images that are not needed, or enlarge the file system.',
    cause: error,
  });
}
