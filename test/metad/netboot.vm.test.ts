import assert from 'node:assert/strict';
import { chmod, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { BootTree } from '../../noded/content/downloads/boot-tree.ts';
import { bootOf, folderTree, NetbootLab } from '../lab/netboot-lab.ts';
import { openConsole, writeTinyDisk } from '../noded/vmm/tiny-guest.ts';

/**
 * The BIOS half of iPXE in the ROM of QEMU's NIC, against the real metad, through the channel's
 * firewall. e2e/netboot-uefi.long.test.ts has the EFI half.
 */

/** An emulated VM's firmware takes seconds on a busy host. */
const DEADLINE_MS = 150_000;
const BIG_BYTES = 40 * 1024 * 1024;
const TREE = 'http://169.254.169.254/ganeti/latest/boot/machines';

let lab: NetbootLab;
let files: string;

before(async () => {
  lab = await NetbootLab.create();
  files = join(lab.directory, 'files');
  await mkdir(files);
  await writeFile(join(files, 'big'), '');
  await truncate(join(files, 'big'), BIG_BYTES);
  // The node relays files that others may write: the end of the daemon cuts the transfer.
  await chmod(join(files, 'big'), 0o666);
  await writeFile(join(files, 'small'), 'small');
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

/** Resolves with the request's log line once the guest has got this status. */
function answered(path: string, status: number): Promise<string> {
  return lab.channel.logLine(`${path}","status":${status}`, DEADLINE_MS);
}

test('a BIOS guest asks once by DHCP, waits for a stopped daemon, retries a cut transfer, and boots from its disk', async () => {
  const disk = join(lab.directory, 'disk');
  await writeTinyDisk(disk);
  const guest = await lab.addGuest();
  const { uuid } = guest.view;
  const base = `${TREE}/${uuid}`;
  const script = `#!ipxe
imgfetch ${base}/boot/small || goto failed
:again
imgfetch ${base}/boot/big || goto again
imgfetch ${TREE}/6aa7b544-1f3d-49e9-b2b7-73836039b5cf/boot/small && goto failed ||
imgfetch ${base}/done
exit
:failed
imgfetch ${base}/failed
`;
  const plain = folderTree(files);
  const hasBegun = Promise.withResolvers<void>();
  const tree: BootTree = {
    open: async (request) => {
      if (request.path === 'big') hasBegun.resolve();
      return plain.open(request);
    },
  };
  lab.trees.set(uuid, tree);
  await lab.stopContent();
  await lab.put({ ...guest.view, boot: bootOf(guest.view, script, { done: 'x', failed: 'x' }) });
  const machine = await lab.start(guest, {
    disks: [{ path: disk, serial: 'tiny', readOnly: false }],
  });
  using console = await openConsole(machine);
  await answered('boot/small', 503);
  await lab.startContent();
  await answered('boot/small', 200);
  await hasBegun.promise;
  await lab.stopContent();
  await lab.startContent();
  await answered('boot/big', 200);
  await answered('done', 200);
  await console.sees('up\r\n');
  const lines = lab.channel.log.split('\n');
  const asked = lines.filter((line) => line.includes('dhcp.answer'));
  assert.deepEqual(
    asked.map((line) => /"type":"(\w+)"/.exec(line)?.[1]),
    ['discover', 'request'],
  );
  const times = [asked[0], lines.find((line) => line.includes('.ipxe"'))].map((line) =>
    Date.parse(/"time":"([^"]+)"/.exec(line ?? '')?.[1] ?? ''),
  );
  // Without an answer to its router request these were 16 seconds.
  assert.ok((times[1] ?? NaN) - (times[0] ?? NaN) < 8_000, times.join());
  assert.ok(lines.some((line) => line.includes('6aa7b544') && line.includes('"status":404')));
  assert.ok(!lines.some((line) => line.includes('/failed')));
});
