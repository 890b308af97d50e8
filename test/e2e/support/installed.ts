import assert from 'node:assert/strict';
import { join } from 'node:path';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';

/** What `gnt-instance info` says of an instance that is there. */
export async function infoOf(lab: Lab, name: string): Promise<InstanceInfo> {
  const { status, stdout, stderr } = await lab.run('gnt-instance', ['info', '--json', name]);
  assert.equal(status, 0, stderr);
  return instanceInfo.parse(JSON.parse(stdout));
}

export async function firstDiskOf(lab: Lab, name: string): Promise<string> {
  return join(lab.paths.disksDir, (await infoOf(lab, name)).uuid, 'disk0.raw');
}

/** Text of a file in the ext4 that an instance's first disk is; empty when it is not there. */
export async function readOnDisk(lab: Lab, name: string, path: string): Promise<string> {
  return (await run('debugfs', ['-R', `cat ${path}`, await firstDiskOf(lab, name)])).stdout;
}
