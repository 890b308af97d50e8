import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Stage } from '../report/stage.ts';

const SECTOR_BYTES = 512;
const WAIT_TIMEOUT_MS = 30_000;
const WAIT_STEP_MS = 50;

export interface BlockDevice {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
}

export interface DiskLocations {
  readonly sysBlock: string;
  readonly dev: string;
}

export const REAL_LOCATIONS: DiskLocations = { sysBlock: '/sys/block', dev: '/dev' };

export function listDisksBySerial(at: DiskLocations): Map<string, BlockDevice> {
  const disks = new Map<string, BlockDevice>();
  for (const name of readdirSync(at.sysBlock)) {
    if (!name.startsWith('vd')) continue;
    const serial = readFileSync(join(at.sysBlock, name, 'serial'), 'utf8').trim();
    const sectors = Number(readFileSync(join(at.sysBlock, name, 'size'), 'utf8'));
    if (serial === '') continue;
    disks.set(serial, { name, path: join(at.dev, name), sizeBytes: sectors * SECTOR_BYTES });
  }
  return disks;
}

/**
 * Creates /dev/disk/by-id/virtio-<serial> for each disk and `-partN` for its partitions, as udev
 * does elsewhere.
 */
export function linkDisks(disks: ReadonlyMap<string, BlockDevice>, at: DiskLocations): void {
  const directory = join(at.dev, 'disk/by-id');
  mkdirSync(directory, { recursive: true });
  for (const [serial, disk] of disks) {
    relink(`../../${disk.name}`, join(directory, `virtio-${serial}`));
    for (const part of listPartitions(disk.name, at))
      relink(`../../${part.name}`, join(directory, `virtio-${serial}-part${part.number}`));
  }
}

export interface Partition {
  readonly name: string;
  readonly number: number;
  readonly startBytes: number;
  readonly sizeBytes: number;
}

export function listPartitions(disk: string, at: DiskLocations): Partition[] {
  const base = join(at.sysBlock, disk);
  const read = (name: string, file: string): number =>
    Number(readFileSync(join(base, name, file), 'utf8'));
  return readdirSync(base)
    .filter((name) => name.startsWith(disk))
    .map((name) => ({
      name,
      number: read(name, 'partition'),
      startBytes: read(name, 'start') * SECTOR_BYTES,
      sizeBytes: read(name, 'size') * SECTOR_BYTES,
    }))
    .sort((a, b) => a.number - b.number);
}

function relink(target: string, path: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

export function createWaitDisksStage(plan: InstallPlan, at: DiskLocations): Stage {
  return {
    name: 'wait-disks',
    async run() {
      const wanted = [
        ...plan.disks,
        ...(plan.image ? [{ serial: plan.image.serial, sizeBytes: 0 }] : []),
        ...(plan.scripts?.dumps ?? []).filter(({ sizeBytes }) => sizeBytes > 0),
      ];
      const disks = await waitForSerials(
        wanted.map((disk) => disk.serial),
        at,
      );
      for (const { serial, sizeBytes } of wanted) {
        const found = disks.get(serial)?.sizeBytes ?? 0;
        if (found >= sizeBytes) continue;
        throw new AppError(
          'DISK_MISSING',
          `disk ${serial} has ${found} bytes, but the plan says ${sizeBytes}`,
        );
      }
      linkDisks(disks, at);
      return `${plan.disks.length} disk(s)${plan.image ? ' and the image' : ''} present`;
    },
  };
}

async function waitForSerials(
  serials: readonly string[],
  at: DiskLocations,
): Promise<Map<string, BlockDevice>> {
  const deadline = performance.now() + WAIT_TIMEOUT_MS;
  for (;;) {
    const disks = listDisksBySerial(at);
    const missing = serials.filter((serial) => !disks.has(serial));
    if (missing.length === 0) return disks;
    if (performance.now() > deadline) {
      throw new AppError('DISK_MISSING', `no disk with serial ${missing.join(', ')} appeared`, {
        hint: 'Check that the disk files of the instance exist: gnt-instance info NAME',
      });
    }
    await sleep(WAIT_STEP_MS);
  }
}
