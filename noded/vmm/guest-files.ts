import { constants } from 'node:fs';
import { mkdir, readFile, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import type { MachineDisk, MachineSpec } from './machine.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { openHostFile } from '../host/open-host-file.ts';
import { findUefi, requireBootRom } from './find-firmware.ts';

/** rw------- */
const VARIABLES_MODE = 0o600;

/** What QEMU opens the image again with, by its descriptor. */
type ImageDriver = 'file' | 'host_device';

export interface OpenDisk {
  readonly handle: FileHandle;
  /** Past the host's page cache. */
  readonly direct: boolean;
  readonly driver: ImageDriver;
}

/**
 * Files of a machine, open for QEMU, which may not open them itself. Disposing closes them here.
 */
export interface GuestFiles extends AsyncDisposable {
  readonly disks: readonly OpenDisk[];
  readonly cdrom: FileHandle | undefined;
  readonly kernel: FileHandle | undefined;
  readonly initrd: FileHandle | undefined;
  readonly uefi: { readonly code: FileHandle; readonly variables: FileHandle } | undefined;
}

/** @throws AppError HOST_PREREQUISITE that names the file */
export async function openGuestFiles(spec: MachineSpec): Promise<GuestFiles> {
  const opened: FileHandle[] = [];
  const keep = (handle: FileHandle): FileHandle => {
    opened.push(handle);
    return handle;
  };
  const closeAll = async (): Promise<void> => {
    await Promise.all(opened.map((handle) => handle.close()));
  };
  try {
    const disks: OpenDisk[] = [];
    for (const disk of spec.disks) {
      const opened = await openDisk(disk);
      keep(opened.handle);
      disks.push(opened);
    }
    const cdrom = spec.cdromPath === undefined ? undefined : keep(await openMedium(spec.cdromPath));
    const { kernel, uefi } = spec;
    if (needsBootRom(spec)) requireBootRom();
    const open = async (path: string | undefined): Promise<FileHandle | undefined> =>
      path === undefined ? undefined : keep(await openReadableByQemu(path));
    return {
      disks,
      cdrom,
      kernel: await open(kernel?.kernelPath),
      initrd: await open(kernel?.initrdPath),
      uefi: uefi && (await openUefi(uefi, keep)),
      [Symbol.asyncDispose]: closeAll,
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function needsBootRom({ kernel, bootOrder = [] }: MachineSpec): boolean {
  return !kernel && bootOrder.some((device) => device === 'channel' || device === 'network');
}

/**
 * The firmware's code as all machines have it, and the variables of this one: what its guest writes
 * there, such as what it boots from, is its own and stays.
 */
async function openUefi(
  { variablesPath, firmwares }: NonNullable<MachineSpec['uefi']>,
  keep: (handle: FileHandle) => FileHandle,
): Promise<NonNullable<GuestFiles['uefi']>> {
  const size = await sizeOf(variablesPath);
  const firmware = findUefi(size, firmwares);
  if (size === null) {
    await mkdir(dirname(variablesPath), { recursive: true, mode: 0o700 });
    const variables = await readFile(firmware.variablesPath);
    await writeDurably(variablesPath, variables, { mode: VARIABLES_MODE });
  }
  return {
    code: keep(await openMedium(firmware.codePath)),
    variables: keep(await openFile(variablesPath, constants.O_RDWR | constants.O_NOFOLLOW)),
  };
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw describe(path, error);
  }
}

/**
 * Without the host's page cache where the file system can: two caches of one disk are a waste, and
 * writes are on the disk when they say so.
 */
export async function openDisk(
  disk: Pick<MachineDisk, 'path' | 'readOnly' | 'cache'>,
): Promise<OpenDisk> {
  const mode = disk.readOnly ? constants.O_RDONLY : constants.O_RDWR;
  if (disk.cache !== 'writeback') {
    try {
      const handle = await openHostFile(disk.path, mode | constants.O_DIRECT);
      return { handle, direct: true, driver: await driverOf(handle) };
    } catch (error) {
      if (systemCodeOf(error) !== 'EINVAL') throw describe(disk.path, error);
    }
  }
  const handle = await openFile(disk.path, mode);
  return { handle, direct: false, driver: await driverOf(handle) };
}

/** Each of QEMU's two refuses what is the other's. */
async function driverOf(handle: FileHandle): Promise<ImageDriver> {
  return (await handle.stat()).isBlockDevice() ? 'host_device' : 'file';
}

/**
 * QEMU opens the kernel and the initrd again, by their descriptors, as a user that owns nothing:
 * the file's own mode counts, its folders' do not.
 */
async function openReadableByQemu(path: string): Promise<FileHandle> {
  const handle = await openMedium(path);
  if (((await handle.stat()).mode & 0o004) !== 0) return handle;
  await handle.close();
  throw new AppError('HOST_PREREQUISITE', `${path} is not readable for all users`, {
    hint: `Make it readable: chmod a+r ${path}`,
  });
}

/** A file or a drive of the host. Opening a FIFO would wait for a writer, for ever. */
async function openMedium(path: string): Promise<FileHandle> {
  const handle = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const found = await handle.stat();
  if (found.isFile() || found.isBlockDevice()) return handle;
  await handle.close();
  throw describe(path, new Error('neither a regular file nor a block device'));
}

async function openFile(path: string, mode: number): Promise<FileHandle> {
  try {
    return await openHostFile(path, mode);
  } catch (error) {
    throw describe(path, error);
  }
}

function describe(path: string, error: unknown): AppError {
  return new AppError('HOST_PREREQUISITE', `cannot open ${path}: ${messageOf(error)}`, {
    cause: error,
  });
}
