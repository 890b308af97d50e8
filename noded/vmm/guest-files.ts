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

/** Block driver with which QEMU reopens the image by its descriptor. */
type ImageDriver = 'file' | 'host_device';

export interface OpenDisk {
  readonly handle: FileHandle;
  /** Bypasses the host's page cache. */
  readonly direct: boolean;
  readonly driver: ImageDriver;
}

/** Open files of a guest, because QEMU's user may not open them. Disposing closes them here. */
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
 * Opens the shared firmware code and the guest's own variables, which keep the guest's changes,
 * such as its boot entries.
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
 * Opens a disk with O_DIRECT if the file system supports it: no second cache of the same data, and
 * a completed write is on the disk.
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

/** Each of QEMU's two drivers refuses the other's kind of file. */
async function driverOf(handle: FileHandle): Promise<ImageDriver> {
  return (await handle.stat()).isBlockDevice() ? 'host_device' : 'file';
}

/**
 * QEMU's user reopens the kernel and the initrd by their descriptors. The mode of the file matters,
 * the modes of its folders do not.
 */
async function openReadableByQemu(path: string): Promise<FileHandle> {
  const handle = await openMedium(path);
  if (((await handle.stat()).mode & 0o004) !== 0) return handle;
  await handle.close();
  throw new AppError('HOST_PREREQUISITE', `${path} is not readable for all users`, {
    hint: `Make it readable: chmod a+r ${path}`,
  });
}

/** Opens a file or a block device. O_NONBLOCK, because opening a FIFO would wait for a writer. */
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
