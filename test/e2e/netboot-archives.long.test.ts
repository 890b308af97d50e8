import assert from 'node:assert/strict';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { debianInstaller, xorriso } from '../lab/unpacked-packages.ts';
import { writeTinyDisk } from '../noded/hypervisor/tiny-guest.ts';
import { infoOf } from './support/ask-nodes.ts';
import {
  createBootEnvs,
  must,
  REHEARSAL,
  sawFirmware,
  until,
} from './support/booted-by-channel.ts';
import { readConsole } from './support/receive-until.ts';

/** Debian's own installer, booted from archives that the appliance has opened: there is no mirror. */
const NAME = 'archived.example.com';
let lab: Lab;
let folder: string;

before(async () => {
  lab = await createLab('gnt-netboot-archives');
  folder = join(lab.paths.root, 'archives');
  await mkdir(folder);
  await lab.startNode();
});
after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

/** The same two files in a tar.gz, as Debian publishes them, and in an ISO. */
async function makeArchives(): Promise<readonly string[]> {
  const files = ['debian-installer/amd64/linux', 'debian-installer/amd64/initrd.gz'];
  const tree = join(await debianInstaller(), '../..');
  const [tar, iso] = [join(folder, 'netboot.tar.gz'), join(folder, 'netboot.iso')];
  await run('tar', ['-C', tree, '-h', '-czf', tar, ...files]);
  const grafts = files.map((file) => `${file}=${join(tree, file)}`);
  const { path, libraries } = await xorriso();
  await run(path, ['-as', 'mkisofs', '-quiet', '-f', '-R', '-o', iso, '-graft-points', ...grafts], {
    env: { LD_LIBRARY_PATH: libraries },
  });
  return [tar, iso];
}

async function rehearsedBy(archive: string, command: readonly string[]): Promise<void> {
  await must(lab, 'gnt-bootenv', 'uploadiso', 'debian-12-install', archive);
  await must(lab, 'gnt-instance', ...command, NAME);
  assert.equal((await infoOf(lab, NAME)).installState, 'installed', archive);
  const log = await must(lab, 'gnt-instance', 'log', NAME);
  assert.match(log, /rehearsal of archived\.example\.com/, archive);
}

test('an installer boots from a tar.gz and from an ISO that were opened, and a script that exits leads to the disk', async () => {
  const [tar = '', iso = ''] = await makeArchives();
  await createBootEnvs(lab);
  await rehearsedBy(tar, ['add', '-s', '64M', '-H', 'accel=tcg', ...REHEARSAL]);
  await rehearsedBy(iso, ['reinstall', '--force', '--no-start', '--bootenv', 'debian-12-install']);

  await must(lab, 'gnt-instance', 'modify', '--bootenv', 'tells', NAME);
  const { uuid } = await infoOf(lab, NAME);
  const system = join(folder, 'system');
  await writeTinyDisk(system);
  const disks = await must(lab, 'gnt-instance', 'activate-disks', NAME);
  const [, disk = ''] = /:disk\/0:(.*)/.exec(disks) ?? [];
  {
    await using handle = await open(disk, 'r+');
    await handle.write(await readFile(system), 0, null, 0);
  }
  await must(lab, 'gnt-instance', 'startup', NAME);
  await sawFirmware(lab, uuid, 'pcbios');
  await until('the disk never said that it is up', async () =>
    (await readConsole(lab, NAME)).includes('up\r\n'),
  );
});
