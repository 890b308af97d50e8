import assert from 'node:assert/strict';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { debianInstaller } from '../lab/unpacked-packages.ts';
import { killNode } from '../lab/kill-node.ts';
import { infoOf, must } from './support/ask-nodes.ts';
import { receiveUntil } from './support/receive-until.ts';

/** An instance that boots Debian's own installer from its channel, by a boot environment. */
let lab: Lab;
const NAME = 'netboot.example.com';
const BOOT_ENV = join(import.meta.dirname, '../../fixtures/bootenvs/debian-12');
/** Path of the installer below the root of a mirror. */
const NETBOOT = '/debian/images/netboot/debian-installer/amd64/';

/** UUID of no instance of this node. */
const ANOTHER = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
const LOOK_AT_ANOTHER = [
  'at=http://169.254.169.254/ganeti/latest;',
  `refused=$(wget -S -t 1 -O /dev/null $at/boot/machines/${ANOTHER}/preseed.cfg 2>&1 | grep -c 'HTTP/1.1 404');`,
  `wget -q -O /dev/null --post-data '[{"type":"log","atMs":0,"stage":"medium","stream":"stdout","line":"refused '$refused'"}]'`,
  '$at/install/events; ',
].join(' ');
/** The rehearsal of the fixture, which first requests another instance's answers. */
const PROBE = `{{.CallTemplate "debian-12-rehearsal.tmpl" . | replace "command string " ${JSON.stringify(`command string ${LOOK_AT_ANOTHER}`)}}}`;
/** A BootEnv that loads nothing, for normal runs. */
const PLAIN = {
  Name: 'plain',
  OS: { Name: 'debian-12' },
  Templates: [{ Name: 'ipxe', ID: 'default-ipxe.tmpl', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe' }],
};

/** Debian's installer in a normal run. It reports by the channel that it is up, and stays. */
const RESCUE = {
  Name: 'rescue',
  OS: {
    Name: 'debian-12',
    SupportedArchitectures: {
      amd64: {
        Kernel: 'debian-installer/amd64/linux',
        Initrds: ['debian-installer/amd64/initrd.gz'],
        BootParams: [
          'auto=true priority=critical preseed/url={{.Machine.Url}}/preseed.cfg',
          'netcfg/no_default_route=true netcfg/get_nameservers=169.254.169.254',
          'netcfg/choose_interface=auto netcfg/get_hostname=rescue netcfg/get_domain=test',
        ].join(' '),
      },
    },
  },
  Templates: [
    ...PLAIN.Templates,
    {
      Name: 'preseed',
      Path: '{{.Machine.Path}}/preseed.cfg',
      Contents:
        'd-i preseed/early_command string wget -q -O /dev/null --post-data rescued http://169.254.169.254/ganeti/latest/write; sleep 600\n',
    },
  ],
};

const gets: string[] = [];
/** Called in the middle of a file, before its transfer is cut. */
let onCut: (name: string) => Promise<void> = () => Promise.resolve();
/** True: the mirror's files are missing. */
let isGone = false;
async function answer(
  { url = '', method }: IncomingMessage,
  response: ServerResponse,
): Promise<unknown> {
  const name = url.startsWith(NETBOOT) ? url.slice(NETBOOT.length) : '';
  if (name !== 'linux' && name !== 'initrd.gz') return response.writeHead(404).end();
  await using file = await open(join(await debianInstaller(), name));
  const { size } = await file.stat();
  if (method === 'GET') gets.push(name);
  if (method === 'GET' && isGone) return response.writeHead(404).end();
  response.setHeader('content-length', size);
  if (method === 'HEAD') return response.end();
  const isFirst = gets.filter((one) => one === name).length === 1;
  const end = isFirst ? size >> 1 : size;
  await pipeline(file.createReadStream({ autoClose: false, end: end - 1 }), response, {
    end: !isFirst,
  });
  if (isFirst) await onCut(name);
  // As a restart of the mirror does.
  return isFirst ? response.destroy() : response;
}
const mirror = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});

before(async () => {
  await debianInstaller();
  lab = await createLab('gnt-netboot');
  await lab.startNode();
});
after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  mirror.close();
  mirror.closeAllConnections();
  await endLab(lab);
});

/** Writes a folder of content in dr-provision's layout. */
async function writeContent(): Promise<string> {
  const folder = join(lab.paths.root, 'content');
  for (const section of ['bootenvs', 'templates'])
    await mkdir(join(folder, section), { recursive: true });
  await writeFile(join(folder, 'bootenvs/plain.json'), JSON.stringify(PLAIN));
  await writeFile(join(folder, 'bootenvs/rescue.json'), JSON.stringify(RESCUE));
  await writeFile(join(folder, 'templates/probe.tmpl'), PROBE);
  return folder;
}

test("Debian's installer boots by ROM, script and mirror, over cut transfers, reads its own answers, reports, and the instance then boots its disk", async () => {
  const url = `http://127.0.0.1:${await listenOnLoopback(mirror)}/debian`;
  await must(lab.run('gnt-bootenv', ['create', BOOT_ENV, await writeContent()]));
  const add = [
    'add', '-s', '1G', '-B', 'memory=1024', '-C', 'yes', '-H', 'accel=tcg', '--no-start',
    '--install-timeout', '420', '--bootenv', 'debian-12-install', '-O', 'debian-preseed=probe.tmpl',
  ]; // prettier-ignore
  const refused = await lab.run('gnt-instance', [...add, NAME]);
  assert.match(refused.stderr, /error\[BOOTENV_NO_SOURCE\]/, 'nobody allowed a mirror');
  await must(lab.run('gnt-cluster', ['modify', `--package-mirror=debian=${url}`]));
  const repository = {
    ...{ tag: 'debian-12', os: ['debian-12'], arch: 'amd64', distribution: 'bookworm' },
    ...{ url, bootloc: `${url}/images/netboot`, installSource: true, components: ['main'] },
  };
  const parameters = `package-repositories=${JSON.stringify([repository])}`;
  await must(lab.run('gnt-profile', ['modify', '-O', parameters.replaceAll(',', '\\,'), 'global']));
  await must(lab.run('gnt-instance', [...add, NAME]));
  const shown = await infoOf(lab, NAME);
  assert.equal(shown.installState, 'installed');
  assert.equal(shown.bootEnv, 'local', 'in the same commit');
  // The kernel was cut, then an initrd. Each time the boot starts again.
  assert.deepEqual(gets, ['linux', 'linux', 'initrd.gz', 'linux', 'initrd.gz']);
  const log = await must(lab.run('gnt-instance', ['log', NAME]));
  assert.match(log, /refused 1\n/);
  assert.match(log, /rehearsal of netboot\.example\.com/);
});

test('a normal run by the channel is refused behind tokens, which firmware cannot ask for', async () => {
  await must(lab.run('gnt-instance', ['modify', '--bootenv', 'plain', NAME]));
  const required = await lab.run('gnt-instance', ['modify', '--metadata-token=required', NAME]);
  assert.match(required.stderr, /error\[VALIDATION\].*session token/);
});

test('an installer that cannot be fetched ends the installation by itself', async () => {
  isGone = true;
  gets.length = 0;
  const { stderr } = await lab.run('gnt-instance', [
    ...['reinstall', '--force', '--no-start', '--bootenv', 'debian-12-install', NAME],
  ]);
  assert.match(stderr, /error\[APPLIANCE_NO_RESULT\]: .* without reporting a result/);
  assert.ok(gets.length > 1 && gets.every((name) => name === 'linux'), gets.join());
  assert.equal(
    (await infoOf(lab, NAME)).installState,
    'installed',
    'its old disks are its own again',
  );
});

test(
  'a daemon that is killed while a machine loads is followed by one that serves it to its end',
  { timeout: 480_000 },
  async () => {
    isGone = false;
    gets.length = 0;
    await must(lab.run('gnt-instance', ['modify', '--bootenv', RESCUE.Name, NAME]));
    const isReplaced = Promise.withResolvers<void>();
    onCut = async (name) => {
      if (name !== 'initrd.gz') return;
      await killNode(lab);
      await lab.startNode();
      isReplaced.resolve();
    };
    await must(lab.run('gnt-instance', ['startup', NAME]));
    await isReplaced.promise;
    await receiveUntil(lab, NAME, 'rescued', 300_000);
    assert.equal(gets.at(-1), 'initrd.gz', gets.join());
    assert.ok(gets.length >= 4, gets.join());
  },
);
