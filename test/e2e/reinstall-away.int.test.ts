import assert from 'node:assert/strict';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { createLab } from '../../scripts/demo/lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { disposeLab } from './support/end-lab.ts';

const NAME = 'shared.example.com';
/** All scripts of the definition. Only `create` receives a disk. */
const SCRIPT = `#!/bin/sh
[ -z "$DISK_0_PATH" ] || echo a system | dd of="$DISK_0_PATH" conv=notrunc status=none
`;

test('disks that are away when they are to be overwritten are not lost: the instance is what it was', async () => {
  const lab = await createLab('gnt-away');
  await using ended = { [Symbol.asyncDispose]: () => disposeLab(lab) };
  void ended;
  const succeed = async (...[program, ...args]: [Parameters<typeof lab.run>[0], ...string[]]) => {
    const { status, stderr } = await lab.run(program, args);
    assert.equal(status, 0, stderr);
  };
  const info = async (): Promise<InstanceInfo> => {
    const { body } = await askSocket(lab.paths.nodedSocket, `/v1/instances/${NAME}`);
    return instanceInfo.parse(JSON.parse(body));
  };
  const dir = join(lab.paths.osSearchPath[0] ?? '', 'line');
  const folder = join(lab.paths.root, 'shared');
  for (const one of [dir, folder]) await mkdir(one, { recursive: true });
  for (const name of ['create', 'import', 'export', 'rename', 'verify'])
    await writeFile(join(dir, name), SCRIPT, { mode: 0o755 });
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), '');
  await lab.startNode();
  await succeed('gnt-os', 'modify', '--trusted', 'yes', 'line');
  await succeed('gnt-cluster', 'modify', '--shared-file-storage-dir', folder);
  const system = ['-t', 'sharedfile', '-o', 'line', '-s', '8M'];
  await succeed('gnt-instance', 'add', '--no-start', ...system, NAME);
  const before = await info();

  // The image arrives after the folder was removed.
  const asked = Promise.withResolvers<ServerResponse>();
  await using server = createServer((_, response) => asked.resolve(response));
  const port = await listenOnLoopback(server);
  const ofImage = ['--enable-safe-install=no', '--image-format', 'raw'];
  const running = lab.run('gnt-instance', [
    ...['reinstall', '--force', '--no-start', '--no-keep-old', ...ofImage],
    ...['--os-image', `http://127.0.0.1:${port}/late.raw`, NAME],
  ]);
  const response = await asked.promise;
  await rename(folder, `${folder}.away`);
  response.end('an image');
  assert.match((await running).stderr, /^error\[HOST_PREREQUISITE\]: /m);
  await rename(`${folder}.away`, folder);

  const { modifiedAtMs, serialNo } = before;
  assert.deepEqual({ ...(await info()), modifiedAtMs, serialNo }, before);
  const disk = await readFile(join(folder, before.uuid, 'disk0.raw'), 'utf8');
  assert.equal(disk.replace(/\0+$/, ''), 'a system\n');
  await succeed('gnt-instance', 'remove', '--force', NAME);
});
