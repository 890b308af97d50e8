import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { z } from 'zod';
import { ownValue } from '#shared/json/own-value.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import { linkDisks, listDisksBySerial, REAL_LOCATIONS } from '../disks/disks.ts';
import { growFileSystem } from '../disks/grow.ts';
import type { StepFields } from './fields.ts';
import { layoutIsReplaced } from './read-book.ts';

type Layout = NonNullable<StepFields['layout']>;
type NewPartition = Layout['add_partitions'][number];

export interface LayoutWorld {
  /** The disk that an image overwrites later, or null. */
  readonly replacedDisk: string | null;
  readonly log: (line: string) => void;
  /** Runs a program of the appliance. @returns the last printed line */
  readonly run: (argv: readonly string[]) => Promise<string>;
}

/** Skips sfdisk's wait for udev, which the appliance does not have. */
const QUIET = ['--no-reread', '--no-tell-kernel'];

const makers: Readonly<Record<string, readonly [command: string, labelOption: string]>> = {
  ext2: ['mkfs.ext2 -q -F', '-L'],
  ext3: ['mkfs.ext3 -q -F', '-L'],
  ext4: ['mkfs.ext4 -q -F', '-L'],
  xfs: ['mkfs.xfs -q -f', '-L'],
  btrfs: ['mkfs.btrfs -q -f', '-L'],
  vfat: ['mkfs.vfat', '-n'],
  swap: ['mkswap', '-L'],
};

const table = z.object({
  partitiontable: z.object({
    label: z.string(),
    sectorsize: z.number().default(512),
    partitions: z
      .array(
        z.object({
          node: z.string(),
          start: z.number(),
          size: z.number(),
          name: z.string().optional(),
        }),
      )
      .default([]),
  }),
});
type Table = z.infer<typeof table>['partitiontable'];

/**
 * Adds missing partitions with their file systems, then grows the last one.
 * @throws AppError
 */
export async function applyLayout(
  layout: Layout,
  { replacedDisk, log, run }: LayoutWorld,
): Promise<void> {
  const disk = await findDisk(await resolveScript(layout.device, run));
  if (replacedDisk !== null && disk === realpathSync(replacedDisk)) throw layoutIsReplaced();
  if (layout.device.init_disk)
    await runCommand('sfdisk', ['--wipe', 'always', ...QUIET, disk], { input: 'label: gpt\n' });
  if ((await readTable(disk)).label === 'gpt')
    // The disk may be larger than its image.
    await runCommand('sfdisk', ['--relocate', 'gpt-bak-std', disk]);
  for (const partition of layout.add_partitions) await addPartition(disk, partition, log);
  if (layout.expand_partition) await expandLast(disk, layout.expand_partition.size, log);
}

/** Formats a line of sfdisk's input for a new partition. Pure. */
export function formatPartition(partition: NewPartition, label: string): string {
  const { size, pLabel, bootable, filesystem } = partition;
  const type = bootable ? 'uefi' : filesystem === 'swap' ? 'swap' : 'linux';
  return [
    ...(size > 0 ? [`size=${size}MiB`] : []),
    `type=${type}`,
    ...(pLabel !== undefined && label === 'gpt' ? [`name="${pLabel}"`] : []),
  ].join(', ');
}

async function addPartition(
  disk: string,
  partition: NewPartition,
  log: (line: string) => void,
): Promise<void> {
  const before = await readTable(disk);
  const name = partition.pLabel ?? partition.fsLabel ?? 'without a label';
  if (await isThere(before, partition)) return log(`partition ${name} exists already`);
  await runCommand('sfdisk', ['--append', ...QUIET, disk], {
    input: `${formatPartition(partition, before.label)}\n`,
  });
  await reread(disk);
  const known = new Set(before.partitions.map(({ node }) => node));
  const added = (await readTable(disk)).partitions.find(({ node }) => !known.has(node));
  if (!added) throw new AppError('HOOK_FAILED', `partition ${name} was not created`);
  const maker = ownValue(makers, partition.filesystem);
  if (maker) {
    const [command = '', ...args] = maker[0].split(' ');
    const label = partition.fsLabel === undefined ? [] : [maker[1], partition.fsLabel];
    await runCommand(command, [...args, ...label, added.node]);
  }
  log(`partition ${name}: ${added.node}, ${partition.filesystem}`);
}

async function isThere({ partitions }: Table, wanted: NewPartition): Promise<boolean> {
  if (wanted.pLabel !== undefined && partitions.some(({ name }) => name === wanted.pLabel))
    return true;
  if (wanted.fsLabel === undefined) return false;
  for (const { node } of partitions) {
    const probed = await tryCommand('blkid', ['-p', '-s', 'LABEL', '-o', 'value', node]);
    if (probed.stdout.trim() === wanted.fsLabel) return true;
  }
  return false;
}

/** @param sizeMiB the new size; 0 is all free space */
async function expandLast(
  disk: string,
  sizeMiB: number,
  log: (line: string) => void,
): Promise<void> {
  const { partitions, sectorsize } = await readTable(disk);
  const last = [...partitions].sort((a, b) => a.start - b.start).at(-1);
  const number = /(?<!\d)(\d+)$/.exec(last?.node ?? '')?.[1];
  if (!last || number === undefined)
    throw new AppError('HOOK_FAILED', 'the disk has no partition to expand');
  if (sizeMiB > 0 && sizeMiB * MIB < last.size * sectorsize)
    throw new AppError('HOOK_FAILED', 'a partition cannot be shrunk');
  await runCommand('sfdisk', [...QUIET, '-N', number, disk], {
    input: sizeMiB > 0 ? `, ${sizeMiB}MiB\n` : ', +\n',
  });
  await reread(disk);
  const after = (await readTable(disk)).partitions.find(({ node }) => node === last.node);
  log(`${last.node}: ${await growFileSystem(last.node, (after?.size ?? 0) * sectorsize)}`);
}

async function readTable(disk: string): Promise<Table> {
  const said = await tryCommand('sfdisk', ['--json', disk]);
  if (said.status !== 0)
    throw new AppError('HOOK_FAILED', 'the disk has no partition table', {
      hint: 'Create one with device: {init_disk: true}',
    });
  return table.parse(JSON.parse(said.stdout)).partitiontable;
}

async function reread(disk: string): Promise<void> {
  await runCommand('partx', ['--update', disk]);
  linkDisks(listDisksBySerial(REAL_LOCATIONS), REAL_LOCATIONS);
}

/** Asks a program for the device, which may be known only in the appliance. */
async function resolveScript(
  device: Layout['device'],
  run: LayoutWorld['run'],
): Promise<Layout['device']> {
  const script = /^script:\/\/(.*)$/.exec(device.path ?? '')?.[1];
  if (script === undefined) return device;
  return { ...device, path: await run(script.trim().split(/\s+/)) };
}

/** Finds a disk by its path, or by the label of a file system on it. */
async function findDisk({ path, label }: Layout['device']): Promise<string> {
  const found =
    path ?? (await tryCommand('blkid', ['-c', '/dev/null', '-L', label ?? ''])).stdout.trim();
  try {
    const device = realpathSync(found);
    if (!statSync(device).isBlockDevice()) throw new Error('not a block device');
    if (path !== undefined) return device;
    const parent = basename(dirname(realpathSync(`/sys/class/block/${basename(device)}`)));
    return parent === 'block' ? device : `/dev/${parent}`;
  } catch (error) {
    throw new AppError('HOOK_FAILED', 'the device does not exist', { cause: error });
  }
}
