import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import type { OsDefinition } from '../../../../noded/provision/os/os-definition.ts';
import { createOsRegistry } from '../../../../noded/provision/os/os-registry.ts';
import { packDefinition } from '../../../../noded/provision/os/pack-definition.ts';

const fixtures = join(import.meta.dirname, '../../../../fixtures/os');
const SECRET = 'what only root may read';
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-pack-'));
});
after(() => rm(directory, { recursive: true }));

async function copyOf(name: string): Promise<OsDefinition> {
  const searchPath = [await mkdtemp(join(directory, 'os-'))];
  await cp(join(fixtures, 'hello'), join(searchPath[0] ?? '', name), { recursive: true });
  return (await createOsRegistry({ searchPath }).find(name)).definition;
}

test('the archive holds the definition with its modes and links, for GNU tar too', async () => {
  const definition = await copyOf('rich');
  await mkdir(join(definition.path, 'lib'));
  await writeFile(join(definition.path, 'lib', 'x'.repeat(150)), 'long');
  await symlink('untrusted/create', join(definition.path, 'link'));
  await symlink('/etc/passwd', join(definition.path, 'outside'));
  await chmod(join(definition.path, 'parameters.list'), 0o640);
  const { tar, scripts } = await packDefinition(definition);
  const target = await mkdtemp(join(directory, 'out-'));
  execFileSync('tar', ['-xpf', '-', '-C', target], { input: tar });
  execFileSync('diff', ['-r', '--no-dereference', definition.path, target]);
  const listing = execFileSync('tar', ['-tvf', '-'], { input: tar, encoding: 'utf8' });
  assert.match(listing, /-rw-r----- 0\/0 .* parameters.list/);
  assert.match(listing, /-rwxr-xr-x 0\/0 .* untrusted\/create/);
  assert.match(listing, /outside -> \/etc\/passwd/);
  assert.deepEqual(scripts, {
    create: await readFile(join(definition.path, 'untrusted/create')),
  });
});

test('a folder that is swapped for a link while it is read brings nothing from where the link leads', async () => {
  const definition = await copyOf('swapped');
  const secrets = await mkdtemp(join(directory, 'secret-'));
  await writeFile(join(secrets, 'shadow'), SECRET);
  const folder = join(definition.path, 'lib');
  await mkdir(folder);
  await writeFile(join(folder, 'shadow'), 'own');
  await symlink(secrets, join(directory, 'link'));
  const swap = `const { renameSync: mv } = require('node:fs');
    const [folder, link, aside] = process.argv.slice(1);
    for (;;) { mv(folder, aside); mv(link, folder); mv(folder, link); mv(aside, folder) }`;
  const swapping = spawn(process.execPath, [
    ...['-e', swap, folder, join(directory, 'link'), join(directory, 'aside')],
  ]);
  try {
    for (let packed = 0, tried = 0; packed < 20 || tried < 300; tried += 1) {
      const found = await packDefinition(definition).catch((error: unknown) => {
        assert.ok(isAppError(error, 'OS_INVALID'), String(error));
        return null;
      });
      if (found === null) continue;
      packed += 1;
      assert.ok(!found.tar.includes(SECRET));
    }
  } finally {
    swapping.kill('SIGKILL');
  }
});

test('the same content gives the same bytes, whatever its times and place', async () => {
  const one = await copyOf('same');
  const two = await copyOf('same');
  await utimes(join(two.path, 'parameters.list'), 1, 1);
  assert.ok((await packDefinition(one)).tar.equals((await packDefinition(two)).tar));
});

test('refuses what is too large or no file, and a script that leads out', async () => {
  const isRefusal = (pattern: RegExp) => (error: unknown) =>
    isAppError(error, 'OS_INVALID') && pattern.test(error.message);
  const large = await copyOf('large');
  await writeFile(join(large.path, 'blob'), '');
  await truncate(join(large.path, 'blob'), 17 * 1024 * 1024);
  await assert.rejects(packDefinition(large), isRefusal(/larger than 16 MiB/));

  const special = await copyOf('special');
  execFileSync('mkfifo', [join(special.path, 'pipe')]);
  await assert.rejects(
    packDefinition(special),
    isRefusal(/'pipe' is not a file, a folder or a link/),
  );

  const leading = await copyOf('leading');
  await rm(join(leading.path, 'untrusted/create'));
  await symlink('/bin/true', join(leading.path, 'untrusted/create'));
  await assert.rejects(
    packDefinition(leading),
    isRefusal(/'untrusted\/create' leads outside of it, to/),
  );
});
