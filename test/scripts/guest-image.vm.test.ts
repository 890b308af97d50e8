import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { StandInHost } from '../appliance/support/stand-in-host.ts';

const USER_DATA = `#!/bin/sh
curl -s --data "$(cloud-id) $(uname -n) $(cat /etc/debian_version)" http://169.254.169.254/ganeti/latest/write
poweroff
`;
const DEADLINE_MS = 300_000;

test('the demo guest boots by its own boot loader, and its stock cloud-init finds the service over the channel and runs the user data', async (t) => {
  const image = await buildGuestImage({ log: (text) => t.diagnostic(text) });
  const directory = await mkdtemp(join(tmpdir(), 'gnt-guest-'));
  const host = await StandInHost.start({
    documents: {
      '/nocloud/meta-data': 'instance-id: i-1\nlocal-hostname: demo1\n',
      '/nocloud/user-data': USER_DATA,
      '/nocloud/vendor-data': '',
    },
  });
  try {
    const disk = join(directory, 'disk.qcow2');
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', image.path, disk]);
    const startedAt = performance.now();
    const child = spawn(
      'qemu-system-x86_64',
      [
        ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-machine', 'q35'],
        ...[
          '-accel',
          'tcg,thread=multi,tb-size=128',
          '-cpu',
          'max,-erms',
          '-smp',
          '2',
          '-m',
          '512M',
        ],
        ...['-serial', 'stdio'],
        ...['-smbios', 'type=1,serial=ds=nocloud-net;s=http://169.254.169.254/nocloud/'],
        ...['-netdev', 'tap,id=net0,fd=3'],
        ...['-device', 'virtio-net-pci,netdev=net0,mac=aa:00:00:00:77:07,romfile='],
        ...['-drive', `if=none,id=disk0,file=${disk},format=qcow2,discard=unmap`],
        ...['-device', 'virtio-blk-pci,drive=disk0,bootindex=1'],
      ],
      { stdio: ['ignore', 'pipe', 'inherit', host.tapFd] },
    );
    let said = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
    await once(child, 'close');
    clearTimeout(timer);
    t.diagnostic(`power-on to power-off: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    assert.deepEqual(host.written.length, 1, said);
    assert.match(host.written[0] ?? '', /^nocloud demo1 12\./);
  } finally {
    await host.stop();
    await rm(directory, { recursive: true });
  }
});
