import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { debianInstaller } from '../lab/unpacked-packages.ts';
import { infoOf } from './support/ask-nodes.ts';
import { createBootEnvs, must, REHEARSAL, sawFirmware } from './support/booted-by-channel.ts';

/** Machines with UEFI firmware: the EFI half of the ROM, and variables beside the disks. */
const NAME = 'uefi.example.com';
const COPY = 'copy.example.com';
let lab: Lab;

async function answer({ url = '', method }: IncomingMessage, response: ServerResponse) {
  const [, name] = /^\/debian\/debian-installer\/amd64\/(linux|initrd\.gz)$/.exec(url) ?? [];
  if (name === undefined) return void response.writeHead(404).end();
  const file = join(await debianInstaller(), name);
  response.setHeader('content-length', (await stat(file)).size);
  if (method === 'HEAD') return void response.end();
  await pipeline(createReadStream(file), response);
}
const mirror = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});

before(async () => {
  await debianInstaller();
  lab = await createLab('gnt-netboot-uefi');
  await lab.startNode();
});
after(async () => {
  for (const name of [NAME, COPY])
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
  mirror.close();
  mirror.closeAllConnections();
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

/** Of the firmware of an instance. */
async function variablesOf(name: string): Promise<Buffer> {
  const { uuid, instanceId } = await infoOf(lab, name);
  const folder = join(lab.paths.disksDir, uuid);
  return readFile(join(folder, `efi-variables-${instanceId}.fd`));
}

test('UEFI boots an installer from the channel, and a copy of the machine has variables of its own', async () => {
  const url = `http://127.0.0.1:${await listenOnLoopback(mirror)}/debian`;
  await createBootEnvs(lab);
  await must(lab, 'gnt-cluster', 'modify', `--package-mirror=debian=${url}`);
  const repository = { tag: 'd', os: ['debian-12'], arch: 'amd64', url, installSource: true };
  const parameters = `package-repositories=${JSON.stringify([repository])}`;
  await must(lab, 'gnt-profile', 'modify', '-O', parameters.replaceAll(',', '\\,'), 'global');
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
