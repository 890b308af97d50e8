import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createHypervisor } from '../../../../noded/vmm/hypervisor.ts';
import { openConsole, tinyHost, tinySpec, writeTinyDisk } from '../../vmm/tiny-guest.ts';
import { assertClean, planSamples, runKilled, SIZE, soil, testVolumes } from './volume-suite.ts';

/** Runs in the machine of volumes.hand.test.ts, whose `/dev/vdb` belongs to the test. */
const group = 'xenvg';
const device = '/dev/vdb';
const lab = {
  ...{ lvm: createLvm(), group, device, folder: '/var/tmp/volumes' },
  makeGroup: () => run('vgcreate', ['--yes', group, device]),
  snapshot: async ({ name, sizeBytes }: Pick<Volume, 'name' | 'sizeBytes'>, origin: string) => {
    const how = ['--snapshot', '--size', `${sizeBytes}b`, '--name', name];
    await run('lvcreate', [...how, `${group}/${origin}`]);
    return () => run('lvremove', ['--yes', `${group}/${name}`]);
  },
  script: [process.argv[1] ?? ''],
};
const [, , operation, at] = process.argv;
if (operation === undefined) testAll();
else await runKilled(lab, operation, Number(at));

function testAll(): void {
  const disks = testVolumes(lab);
  const { before, disk, record } = planSamples(group);
  const grown = record([disk(10, 2 * SIZE), disk(11)]);

  test('a machine has the volume by a descriptor, nobody else gets it, and it grows', async () => {
    await soil(lab);
    await disks.createEmpty(before);
    const path = disks.pathOf(before, 0);
    await writeTinyDisk('/var/tmp/tiny');
    await writeFile(path, await readFile('/var/tmp/tiny'), { flag: 'r+' });
    const machine = await createHypervisor(tinyHost('/var/tmp/vm')).start(tinySpec(path));
    try {
      using console = await openConsole(machine);
      await console.sees('up\r\n');
      await assert.rejects(disks.checkUnused(before), { code: 'DISK_IN_USE' });
      await assert.rejects(disks.hold(before), { code: 'DISK_IN_USE' });
      await assert.rejects(disks.remove(before), { code: 'DISK_IN_USE' });
      await disks.growBelow(before, 0, 2 * SIZE);
      await machine.growDisk(0, 2 * SIZE);
      await assertClean(path);
    } finally {
      await machine.kill();
    }
    await (await disks.hold(grown))[Symbol.asyncDispose]();
  });

  test("a guest's own volume group inside its volume is not looked for by the daemon, whatever the host says", async () => {
    const lvm = createLvm();
    await disks.settle(grown);
    const inside = ['--config', 'devices/scan_lvs=1'];
    await run('pvcreate', ['--yes', ...inside, disks.pathOf(grown, 0)]);
    await run('vgcreate', [...inside, 'ofguest', disks.pathOf(grown, 0)]);
    assert.equal(await lvm.isScanned(), false);
    await run('sed', ['-i', 's/^devices {/devices {\\n\\tscan_lvs=1/', '/etc/lvm/lvm.conf']);
    assert.match((await run('vgs', [])).stdout, /ofguest/, 'the host itself does not see it');
    assert.equal(await lvm.isScanned(), true);
    assert.deepEqual(
      (await lvm.listGroups()).map(({ name }) => name),
      [group],
    );
    await assert.rejects(disks.checkSizes(grown.disks, grown), { code: 'HOST_PREREQUISITE' });
    await run('sed', ['-i', '/^\\tscan_lvs=1$/d', '/etc/lvm/lvm.conf']);
  });

  test('a volume that is not active is activated before it is used', async () => {
    await run('lvchange', ['--activate', 'n', `${group}/${before.disks[0]?.uuid ?? ''}.disk`]);
    await assert.rejects(disks.activate(grown), { code: 'DISK_MISSING' });
    await disks.settle(grown);
    await disks.activate(grown);
    await disks.remove(grown);
  });
}
