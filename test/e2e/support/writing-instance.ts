import assert from 'node:assert/strict';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { createWritingSector, findWrongSector } from '../../noded/vmm/writing-guest.ts';

export const WRITER = 'writer.example.com';
/** The guest fills it in 225 s of its clock, longer than a test file takes. */
export const WRITER_DISK_BYTES = 128 * MIB;
const SECTOR_BYTES = 512;
const LIMIT_MS = 60_000;

/** An instance whose guest only fills its disk. */
export interface WritingInstance {
  /** Adds and starts it. */
  readonly start: () => Promise<void>;
  /** Runs a verb of gnt-instance that must succeed. @returns its output, then its errors */
  readonly gnt: (...words: string[]) => Promise<string>;
  readonly info: () => Promise<InstanceInfo>;
  /** Folder of its disks. */
  readonly folder: () => Promise<string>;
  /** @returns the number of bytes in a file that match the guest's writes */
  readonly writtenTo: (path: string) => Promise<number>;
  /** @returns the same of its disk, when it is more than `beyond` */
  readonly untilWritten: (beyond: number) => Promise<number>;
}

/** @param disks folder of the node's disks */
export function createWritingInstance(lab: Lab, disks: string): WritingInstance {
  const gnt = async (...words: string[]): Promise<string> => {
    const { status, stdout, stderr } = await lab.run('gnt-instance', words);
    assert.equal(status, 0, stderr);
    return stdout + stderr;
  };
  const info = async (): Promise<InstanceInfo> => {
    const { stdout } = await lab.run('gnt-instance', ['info', '--json', WRITER]);
    return instanceInfo.parse(JSON.parse(stdout));
  };
  const folder = async (): Promise<string> => join(disks, (await info()).uuid);
  const writtenTo = async (path: string): Promise<number> =>
    (findWrongSector(await readFile(path)) ?? WRITER_DISK_BYTES / SECTOR_BYTES) * SECTOR_BYTES;
  return {
    ...{ gnt, info, folder, writtenTo },
    start: async () => {
      const image = join(lab.paths.root, 'image.raw');
      await writeFile(image, Buffer.alloc(MIB), { mode: 0o644 });
      const size = ['-s', `${WRITER_DISK_BYTES / MIB}M`, '-B', 'memory=64M', '-H', 'accel=tcg'];
      await gnt('add', '--no-install', '--no-nics', '--os-image', image, ...size, WRITER);
      {
        await using file = await open(join(await folder(), 'disk0.raw'), 'r+');
        await file.write(createWritingSector(WRITER_DISK_BYTES, 'ticks'), 0, SECTOR_BYTES, 0);
      }
      await gnt('startup', WRITER);
    },
    untilWritten: async (beyond) => {
      const path = join(await folder(), 'disk0.raw');
      const deadlineMs = performance.now() + LIMIT_MS;
      for (;;) {
        const written = await writtenTo(path);
        if (written > beyond) return written;
        assert.ok(performance.now() < deadlineMs, `the guest does not get beyond ${written} bytes`);
        await sleep(100);
      }
    },
  };
}
