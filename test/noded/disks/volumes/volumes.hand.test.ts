import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { MIB } from '#shared/units/bytes.ts';
import { hostTree } from '../../../lab/debian-releases.ts';
import { SystemMachine } from '../../../package/system-machine.ts';

/**
 * LVM needs a device mapper, which the kernel of a host that runs tests may not have: the disk layer
 * runs in an emulated machine, with Debian's kernel, LVM, udev and QEMU.
 */
const PACKAGES = ['lvm2', 'thin-provisioning-tools', 'qemu-system-x86', 'qemu-utils'];
const MORE_PACKAGES = ['libatomic1', 'netbase'];
/** CommonJS packages ask for modules of Node's own by `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

test('volumes of LVM are made, used, grown and removed, whenever a daemon is killed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-volumes-'));
  try {
    const bundle = join(folder, 'in-machine.mjs');
    await build({
      entryPoints: [join(import.meta.dirname, 'in-machine.ts')],
      ...{ outfile: bundle, bundle: true, platform: 'node', format: 'esm', target: 'node26' },
      ...{ external: ['koffi', 'netlink'], banner: { js: REQUIRE }, logLevel: 'error' },
    });
    const modules = join(import.meta.dirname, '../../../../node_modules');
    await using machine = await SystemMachine.boot({
      tree: await hostTree('bookworm', [...PACKAGES, ...MORE_PACKAGES]),
      files: {
        'usr/bin/node': process.execPath,
        'root/in-machine.mjs': bundle,
        'root/koffi': join(modules, 'koffi'),
        'root/@koromix': join(modules, '@koromix'),
      },
      moreDiskBytes: [40 * MIB],
    });
    await machine.run(
      'mkdir /root/node_modules && mv /root/koffi /root/@koromix /root/node_modules',
    );
    await machine.run('modprobe dm-mod && mkdir -p /var/tmp/volumes /var/tmp/vm');
    const { status, output } = await machine.try(
      'exec node --test-reporter=spec /root/in-machine.mjs',
    );
    process.stdout.write(`${output}\n`);
    assert.equal(status, 0, output);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
