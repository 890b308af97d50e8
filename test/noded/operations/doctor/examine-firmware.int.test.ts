import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { DoctorFinding } from '#shared/contract/api.ts';

const MODULE = join(import.meta.dirname, '../../../../noded/operations/doctor/examine-firmware.ts');
const ROM = 'usr/lib/ipxe/qemu/efi-virtio.rom';
/** Folders of firmware in common distributions. */
const FOLDERS = [
  ...['/usr/lib/ipxe', '/usr/share/ipxe', '/usr/share/qemu'],
  ...['/usr/share/OVMF', '/usr/share/edk2'],
];

/** Returns the finding for a host with only these firmware files. */
async function examine(directory: string, files: readonly string[]): Promise<DoctorFinding> {
  for (const file of files) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), 'firmware');
  }
  const mounts = FOLDERS.filter((folder) => existsSync(folder)).map(
    (folder) => `mkdir -p ${directory}${folder} && mount --bind ${directory}${folder} ${folder}`,
  );
  const ask = `import(${JSON.stringify(MODULE)}).then(({ examineFirmware }) => console.log(JSON.stringify(examineFirmware())))`;
  const output = execFileSync(
    'unshare',
    ['-m', 'sh', '-ec', [...mounts, 'exec "$0" -e "$1"'].join('\n'), process.execPath, ask],
    { encoding: 'utf8' },
  );
  return JSON.parse(output) as DoctorFinding;
}

test('a host without the ROM, or without UEFI, is told so, and what to install', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-firmware-'));
  t.after(() => rm(directory, { recursive: true }));
  const none = await examine(directory, []);
  assert.equal(none.level, 'warning');
  assert.match(none.message, /^found no efi-virtio\.rom in /);
  assert.equal(none.hint, 'Install it: apt-get install ipxe-qemu');

  const rom = await examine(directory, [ROM]);
  assert.equal(rom.level, 'ok');
  assert.match(
    rom.message,
    /ROM of NICs: \/usr\/lib\/ipxe\/qemu\/efi-virtio\.rom; found no UEFI firmware at /,
  );
  assert.match(rom.message, /apt-get install ovmf/);
});
