import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findUefi, type UefiFirmware } from '../../../noded/vmm/find-firmware.ts';
import { openGuestFiles } from '../../../noded/vmm/guest-files.ts';
import { tinySpec, writeTinyDisk } from './tiny-guest.ts';

test('an instance keeps its UEFI variables, and gets the firmware code of their size', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-uefi-'));
  t.after(() => rm(directory, { recursive: true }));
  const make = async (name: string, bytes: number): Promise<UefiFirmware> => {
    const firmware = {
      codePath: join(directory, `${name}-code`),
      variablesPath: join(directory, `${name}-variables`),
    };
    await writeFile(firmware.codePath, name);
    await writeFile(firmware.variablesPath, name);
    await truncate(firmware.variablesPath, bytes);
    return firmware;
  };
  const firmwares = [
    { codePath: join(directory, 'none'), variablesPath: join(directory, 'none') },
    await make('new', 4096),
    await make('old', 1024),
  ];
  const disk = join(directory, 'disk');
  await writeTinyDisk(disk);
  const variablesPath = join(directory, 'instance/variables');
  const spec = tinySpec(disk, { uefi: { variablesPath, firmwares } });
  const open = async (): Promise<string> => {
    await using files = await openGuestFiles(spec);
    assert.ok(files.uefi);
    const read = Buffer.alloc(3);
    await files.uefi.variables.read(read, 0, 3, 0);
    await files.uefi.variables.write('own', 0);
    await assert.rejects(files.uefi.code.write('x', 0), { code: 'EBADF' });
    return `${(await files.uefi.code.readFile()).toString()} ${read.toString()}`;
  };
  assert.equal(await open(), 'new new');
  assert.equal((await stat(variablesPath)).mode & 0o777, 0o600);
  assert.equal(await open(), 'new own');
  await truncate(variablesPath, 1024);
  assert.equal(await open(), 'old own');
  await truncate(variablesPath, 3);
  await assert.rejects(open(), { code: 'HOST_PREREQUISITE' });
  assert.throws(() => findUefi(null, firmwares.slice(0, 1)), {
    code: 'HOST_PREREQUISITE',
    message: /no UEFI firmware at .*none/,
  });
});
