import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { listDisksBySerial, REAL_LOCATIONS } from '../../../../appliance/agent/disks/disks.ts';
import {
  deactivateVolumeGroups,
  listInstanceDevices,
  listFileSystems,
  rereadPartitions,
} from '../../../../appliance/agent/disks/file-systems.ts';
import { mountInstance, TARGET_PATH } from '../../../../appliance/agent/disks/mount.ts';
import { tryCommand } from '../../../../appliance/agent/process/command.ts';

/**
 * Runs inside the appliance, as a program of an OS script. Each generator below a folder makes two
 * disks, and may use a third one. The agent's own code examines them and mounts the instance's
 * root. Prints one line of JSON for each.
 */
const SERIALS = ['first', 'second'];
/** A disk that is not the instance's, such as an image's. */
const OTHER_SERIAL = 'disk0';

async function tryCase(script: string, paths: readonly string[]): Promise<string> {
  const plan: InstallPlan = {
    version: 1,
    installId: '11111111-1111-1111-1111-111111111111',
    instance: 'test.example.com',
    disks: SERIALS.map((serial) => ({ serial, sizeBytes: 0 })),
    image: null,
    scripts: null,
    personalization: null,
  };
  const lines: string[] = [];
  const reporter = { log: (line: string) => void lines.push(line), progress: () => undefined };
  const made = await tryCommand('/bin/bash', ['-eu', script, ...paths]);
  if (made.status !== 0) return `the generator failed: ${made.stderr.trim()}`;
  try {
    await rereadPartitions(plan, REAL_LOCATIONS);
    lines.push(await mountInstance(await listFileSystems(plan, REAL_LOCATIONS), false, reporter));
    lines.push(existsSync(`${TARGET_PATH}/etc/os-release`) ? 'it is a root' : 'it is no root');
  } catch (error) {
    lines.push(`${isAppError(error) ? error.code : 'INTERNAL'}: ${messageOf(error)}`);
  }
  await tryCommand('umount', [TARGET_PATH]);
  await deactivateVolumeGroups(listInstanceDevices(plan, REAL_LOCATIONS), REAL_LOCATIONS);
  return lines.join('\n');
}

async function wipe(path: string): Promise<void> {
  await tryCommand('dmsetup', ['remove_all']);
  await tryCommand('wipefs', ['-aq', path]);
  await tryCommand('dd', ['if=/dev/zero', `of=${path}`, 'bs=1M', 'count=64', 'conv=fsync']);
  await tryCommand('partx', ['--update', path]);
}

const [folder = ''] = process.argv.slice(2);
const disks = listDisksBySerial(REAL_LOCATIONS);
const paths = [...SERIALS, OTHER_SERIAL].map((serial) => disks.get(serial)?.path ?? '');
for (const name of readdirSync(folder).sort()) {
  for (const path of paths) await wipe(path);
  const outcome = await tryCase(join(folder, name), paths);
  process.stdout.write(`${JSON.stringify([name, outcome])}\n`);
}
