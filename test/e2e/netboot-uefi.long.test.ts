import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { debianInstaller, xorriso } from '../lab/unpacked-packages.ts';
import { infoOf } from './support/ask-nodes.ts';
import { createBootEnvs, must, REHEARSAL, sawFirmware } from './support/booted-by-channel.ts';

/**
 * Guests with UEFI firmware: the EFI half of the ROM, an installer from an extracted ISO, and
 * variables beside the disks. netboot.long.test.ts tests BIOS and a mirror,
 * boot-archives.long.test.ts each archive.
 */
/** An iPXE script that gives its initrds no names: .BootParams has to name them for the kernel. */
const PUBLISHED_SCRIPT = join(
  import.meta.dirname,
  '../../fixtures/bootenvs/published-shapes/templates/default-ipxe.tmpl',
);
const NAME = 'uefi.example.com';
const COPY = 'copy.example.com';
let lab: Lab;

before(async () => {
  await debianInstaller();
  lab = await createLab('gnt-netboot-uefi');
  await lab.startNode();
});
after(async () => {
  for (const name of [NAME, COPY])
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

/** Makes an ISO with the installer, as on its discs. There is no mirror. */
async function makeIso(): Promise<string> {
  const tree = join(await debianInstaller(), '../..');
  const iso = join(lab.paths.root, 'netboot.iso');
  const files = ['debian-installer/amd64/linux', 'debian-installer/amd64/initrd.gz'];
  const grafts = files.map((file) => `${file}=${join(tree, file)}`);
  const { path, libraries } = await xorriso();
  await run(path, ['-as', 'mkisofs', '-quiet', '-f', '-R', '-o', iso, '-graft-points', ...grafts], {
    env: { LD_LIBRARY_PATH: libraries },
  });
  return iso;
}

/** Reads the firmware variables of an instance. */
async function variablesOf(name: string): Promise<Buffer> {
  const { uuid, instanceId } = await infoOf(lab, name);
  const folder = join(lab.paths.disksDir, uuid);
  return readFile(join(folder, `efi-variables-${instanceId}.fd`));
}

test('UEFI boots an installer of an ISO by a published iPXE script, and a copy of the machine has variables of its own', async () => {
  const iso = await makeIso();
  await createBootEnvs(lab, PUBLISHED_SCRIPT);
  await must(lab, 'gnt-bootenv', 'uploadiso', 'debian-12-install', iso);
  const uefi = ['-H', 'accel=tcg,firmware=uefi'];
  await must(lab, 'gnt-instance', 'add', '-s', '64M', ...uefi, ...REHEARSAL, NAME);
  assert.equal((await infoOf(lab, NAME)).installState, 'installed');
  assert.match(await must(lab, 'gnt-instance', 'log', NAME), /rehearsal of uefi\.example\.com/);

  await must(lab, 'gnt-instance', 'modify', '--bootenv', 'tells', NAME);
  await must(lab, 'gnt-instance', 'startup', NAME);
  await sawFirmware(lab, (await infoOf(lab, NAME)).uuid, 'efi');
  await must(lab, 'gnt-instance', 'shutdown', '--timeout=0', NAME);
  const own = await variablesOf(NAME);

  await must(lab, 'gnt-instance', 'copy', NAME, COPY);
  assert.ok((await variablesOf(COPY)).equals(own), 'as the system was entered in');
  await must(lab, 'gnt-instance', 'startup', COPY);
  await sawFirmware(lab, (await infoOf(lab, COPY)).uuid, 'efi');
  await must(lab, 'gnt-instance', 'shutdown', '--timeout=0', COPY);
  assert.ok(!(await variablesOf(COPY)).equals(own), 'its card is another one');
  assert.ok((await variablesOf(NAME)).equals(own), "nobody wrote into the first one's");
});
