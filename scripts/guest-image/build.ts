import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '#shared/process/run.ts';
import { GIB } from '#shared/units/bytes.ts';
import { chooseAptSources, readAptSources } from '../../appliance/image/apt-sources.ts';
import { acquireLock } from '../../appliance/image/lock.ts';
import { hashFile } from '#shared/files/hash-file.ts';
import { makeCoreImage, planBootSectors } from './boot-sectors.ts';
import { makeGuestRoot } from './guest-root.ts';

export interface GuestImageOptions {
  readonly log: (text: string) => void;
  /** Default: `~/.cache/gnt`. */
  readonly cacheDir?: string;
  readonly proxyEnvironment?: Readonly<Record<string, string>>;
}

export interface GuestImage {
  /** A qcow2 file of a 1 GiB disk. */
  readonly path: string;
  readonly sha256: string;
}

const SECTOR_BYTES = 512;
const IMAGE_BYTES = GIB;
/** The BIOS boot partition fills the space between the partition table and the first mebibyte. */
const BOOT_SECTOR = 34;
const ROOT_SECTOR = 2048;
const BACKUP_TABLE_SECTORS = 33;
const IMAGE_NAME = 'debian-12-cloud-init.qcow2';
const MKE2FS_TIMEOUT_MS = 5 * 60_000;
const WORK_PREFIX = '.guest-building-';

/**
 * Builds a Debian 12 guest with stock cloud-init that boots from its own disk by its own boot
 * loader, without mounts and loop devices. Uses the cache when it is intact and of this builder.
 */
export async function buildGuestImage(options: GuestImageOptions): Promise<GuestImage> {
  const { log, cacheDir = process.env['GNT_CACHE'] ?? join(homedir(), '.cache/gnt') } = options;
  const sources = chooseAptSources(readAptSources());
  const directory = join(cacheDir, `guest-${await hashBuilder(sources)}`);
  await mkdir(cacheDir, { recursive: true });
  const signal = new AbortController().signal;
  const lock = await acquireLock(join(cacheDir, 'guest.lock'), {
    onWait: () => log('waiting for another build of the guest image'),
    signal,
  });
  try {
    const cached = await readCached(directory);
    if (cached) {
      log('the build cache has an intact demo guest image');
      return cached;
    }
    await removeWork(cacheDir);
    const workDir = join(cacheDir, `${WORK_PREFIX}${process.pid}`);
    await mkdir(workDir);
    try {
      await buildInto(workDir, sources, options);
      await rm(directory, { recursive: true, force: true });
      await rename(join(workDir, 'out'), directory);
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
    const built = await readCached(directory);
    if (!built) throw new Error('the guest image differs when it is read back');
    return built;
  } finally {
    await lock.release();
  }
}

async function hashBuilder(sources: readonly string[]): Promise<string> {
  const own = fileURLToPath(new URL('.', import.meta.url));
  const hash = createHash('sha256').update(sources.join('\n'));
  for (const name of (await readdir(own)).sort()) hash.update(await readFile(join(own, name)));
  return hash.digest('hex').slice(0, 32);
}

async function readCached(directory: string): Promise<GuestImage | null> {
  const path = join(directory, IMAGE_NAME);
  const sha256 = await readFile(`${path}.sha256`, 'utf8').catch(() => null);
  if (sha256 === null || (await hashFile(path).catch(() => null)) !== sha256.trim()) return null;
  return { path, sha256: sha256.trim() };
}

async function removeWork(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (name.startsWith(WORK_PREFIX) || /^guest-[0-9a-f]{32}$/.test(name))
      await rm(join(cacheDir, name), { recursive: true, force: true });
  }
}

async function buildInto(
  workDir: string,
  sources: readonly string[],
  options: GuestImageOptions,
): Promise<void> {
  const { log } = options;
  const rootPath = join(workDir, 'root');
  log('installing Debian 12 with cloud-init into a tree');
  const kernelVersion = await makeGuestRoot(rootPath, {
    sources,
    proxyEnvironment: options.proxyEnvironment ?? {},
  });
  log('creating the disk: partitions, file system, boot loader');
  const disk = join(workDir, 'disk.raw');
  await makeDisk(disk, rootPath);
  await writeBootLoader(disk, workDir, kernelVersion);
  log('packing it as qcow2');
  const output = join(workDir, 'out');
  await mkdir(output);
  const image = join(output, IMAGE_NAME);
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', disk, image], {
    timeoutMs: MKE2FS_TIMEOUT_MS,
  });
  await writeFile(`${image}.sha256`, `${await hashFile(image)}\n`);
}

async function makeDisk(disk: string, rootPath: string): Promise<void> {
  const file = await open(disk, 'w');
  await file.truncate(IMAGE_BYTES);
  await file.close();
  const rootSectors = IMAGE_BYTES / SECTOR_BYTES - ROOT_SECTOR - BACKUP_TABLE_SECTORS;
  const table = [
    'label: gpt',
    'first-lba: 34',
    `start=${BOOT_SECTOR}, size=${ROOT_SECTOR - BOOT_SECTOR}, type=21686148-6449-6E6F-744E-656564454649, name=bios`,
    `start=${ROOT_SECTOR}, size=${rootSectors}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=root`,
    '',
  ].join('\n');
  await run('sfdisk', ['--quiet', disk], { input: table });
  await run(
    'mke2fs',
    [
      ...['-q', '-t', 'ext4', '-L', 'root', '-d', rootPath],
      ...['-E', `offset=${ROOT_SECTOR * SECTOR_BYTES},lazy_itable_init=1,lazy_journal_init=1`],
      disk,
      `${Math.floor((rootSectors * SECTOR_BYTES) / 1024)}k`,
    ],
    { timeoutMs: MKE2FS_TIMEOUT_MS },
  );
}

async function writeBootLoader(
  disk: string,
  workDir: string,
  kernelVersion: string,
): Promise<void> {
  const commands = [
    'set root=(hd0,gpt2)',
    `linux /boot/vmlinuz-${kernelVersion} root=LABEL=root ro console=tty0 console=ttyS0 quiet fsck.mode=skip`,
    `initrd /boot/initrd.img-${kernelVersion}`,
    'boot',
    '',
  ].join('\n');
  const core = await makeCoreImage(workDir, commands);
  const sectors = await planBootSectors(core, BOOT_SECTOR);
  if (sectors.core.length > (ROOT_SECTOR - BOOT_SECTOR) * SECTOR_BYTES)
    throw new Error(`the boot loader is too large for its partition: ${sectors.core.length} bytes`);
  const file = await open(disk, 'r+');
  await file.write(sectors.bootCode, 0, sectors.bootCode.length, 0);
  await file.write(sectors.core, 0, sectors.core.length, BOOT_SECTOR * SECTOR_BYTES);
  await file.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const image = await buildGuestImage({
    log: (text) => process.stderr.write(`${text}\n`),
  });
  process.stdout.write(`${JSON.stringify(image)}\n`);
}
