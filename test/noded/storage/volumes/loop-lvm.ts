import { mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import {
  GROUP_FIELDS,
  parseGroups,
  parseVolumes,
  VOLUME_FIELDS,
} from '../../../../noded/storage/drivers/lvm/parse-report.ts';
import { volumePath } from '../../../../noded/storage/drivers/volumes/volume-names.ts';

const REPORT = ['--reportformat', 'json', '--units', 'b', '--nosuffix'];
const segments = z.object({
  report: z.tuple([
    z.object({
      lv: z.array(
        z.object({ lv_name: z.string(), seg_pe_ranges: z.string(), lv_size: z.string() }),
      ),
    }),
  ]),
});

export interface LoopLvm extends VolumeSystem {
  command(name: string, ...args: readonly string[]): Promise<string>;
}

/**
 * Runs LVM on a kernel without a device mapper. Its own commands keep the group's metadata on the
 * device. A loop device over the same bytes stands for the mapped device. A volume is one piece
 * there.
 */
export function createLoopLvm(group: string, device: string, program = 'lvm'): LoopLvm {
  const config = `devices { filter=["a|^${device}$|","r|.*|"] } backup { backup=0 archive=0 }`;
  const options = ['--driverloaded', 'n', '--config', config];
  const command: LoopLvm['command'] = async (name, ...args) =>
    (await run(program, [name, ...options, ...args], { env: { LVM_SUPPRESS_FD_WARNINGS: '1' } }))
      .stdout;
  const deactivate = async (name: string): Promise<void> => {
    const path = volumePath(group, name);
    const loop = await readlink(path).catch(() => null);
    if (loop === null) return;
    await run('losetup', ['--detach', loop]);
    await rm(path);
  };
  const activate = async (name: string): Promise<void> => {
    const report = await command('lvs', ...REPORT, '-o', 'lv_name,lv_size,seg_pe_ranges', group);
    const [{ lv }] = segments.parse(JSON.parse(report)).report;
    const [found, ...others] = lv.filter((row) => row.lv_name === name);
    const [, first] = /:(\d+)-\d+$/.exec(found?.seg_pe_ranges ?? '') ?? [];
    if (found === undefined || first === undefined || others.length > 0)
      throw new Error(`${name} is not one piece: ${report}`);
    const [{ extentBytes } = { extentBytes: 0 }] = await listGroups();
    const start = await command(
      'pvs',
      ...REPORT.slice(2),
      '--noheadings',
      '-o',
      'pe_start',
      device,
    );
    const place = ['--offset', `${Number(start) + Number(first) * extentBytes}`];
    const size = ['--sizelimit', found.lv_size];
    const loop = (await run('losetup', ['--find', '--show', ...place, ...size, device])).stdout;
    await mkdir(`/dev/${group}`, { recursive: true });
    await symlink(loop.trim(), volumePath(group, name));
  };
  const listGroups: VolumeSystem['listGroups'] = async () =>
    parseGroups(await command('vgs', ...REPORT, '-o', GROUP_FIELDS));
  return {
    ...createLvm(),
    command,
    listGroups,
    listVolumes: async () => {
      const all = parseVolumes(await command('lvs', ...REPORT, '-o', VOLUME_FIELDS));
      const isThere = async (name: string): Promise<boolean> =>
        (await readlink(volumePath(group, name)).catch(() => null)) !== null;
      return Promise.all(all.map(async (one) => ({ ...one, isActive: await isThere(one.name) })));
    },
    create: async ({ name, sizeBytes, tags }) => {
      const labels = tags.flatMap((tag) => ['--addtag', tag]);
      const quiet = ['--activate', 'n', '--zero', 'n', '--wipesignatures', 'n'];
      await command(
        'lvcreate',
        ...quiet,
        '--size',
        `${sizeBytes}b`,
        ...labels,
        '--name',
        name,
        group,
      );
      await activate(name);
    },
    extend: async ({ name }, sizeBytes) => {
      await command('lvextend', '--size', `${sizeBytes}b`, `${group}/${name}`);
      await deactivate(name);
      await activate(name);
    },
    rename: async ({ name }, to) => {
      await command('lvrename', group, name, to);
      const loop = await readlink(volumePath(group, name)).catch(() => null);
      if (loop === null) return;
      await symlink(loop, volumePath(group, to));
      await rm(volumePath(group, name));
    },
    remove: async ({ name }) => {
      await deactivate(name);
      await command('lvremove', '--yes', `${group}/${name}`);
    },
    activate: ({ name }) => activate(name),
    tag: async ({ name }, change) => {
      const option = 'add' in change ? ['--addtag', change.add] : ['--deltag', change.remove];
      await command('lvchange', ...option, `${group}/${name}`);
    },
  };
}
