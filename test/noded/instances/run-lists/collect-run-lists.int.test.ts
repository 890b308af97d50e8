import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runLists } from '#shared/contract/lifecycle.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { collectRunLists } from '../../../../noded/instances/run-lists/collect-run-lists.ts';

/** Folders of a cluster and of an OS definition, with the given files. */
async function createPlaces(t: TestContext, ...files: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-run-lists-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const file of files) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), '#!/bin/sh\ntrue\n');
  }
  return { dir, clusterDir: join(dir, 'cluster'), osPath: join(dir, 'os') };
}

const content = Buffer.from('#!/bin/sh\ntrue\n').toString('base64');
const own = runLists.parse({
  boot: [
    { name: 'zulu', content },
    { name: 'alpha', content },
  ],
});

async function bootOf(places: Parameters<typeof collectRunLists>[0]): Promise<readonly string[]> {
  const collected = await collectRunLists(places);
  return (collected?.lists.boot ?? []).map(({ name }) => name);
}

test('the cluster’s scripts come first, then those of the OS definition, then the instance’s own as they are given', async (t) => {
  const { clusterDir, osPath } = await createPlaces(
    t,
    ...['cluster/boot/20-net', 'cluster/boot/10-base', 'cluster/boot/10-base~', 'cluster/boot/.x'],
    ...['os/run-lists/boot/50-os', 'os/run-lists/boot/05-os', 'os/run-lists/decommission/leave'],
  );
  const all = ['10-base', '20-net', '05-os', '50-os', 'zulu', 'alpha'];
  assert.deepEqual(await bootOf({ clusterDir, osPath, own }), all);
  assert.deepEqual(await bootOf({ clusterDir, osPath: null, own: null }), ['10-base', '20-net']);
  const ofOs = await collectRunLists({ clusterDir: '/nonexistent', osPath, own: null });
  assert.deepEqual(
    ofOs?.lists.decommission.map(({ name }) => name),
    ['leave'],
  );
  assert.equal(
    await collectRunLists({ clusterDir: '/nonexistent', osPath: null, own: null }),
    null,
  );
});

test('what an OS definition links to is no part of it', async (t) => {
  const { dir, osPath } = await createPlaces(t, 'os/create', 'other/boot/theirs', 'plain');
  const places = { clusterDir: '/nonexistent', osPath, own: null };
  await symlink(join(dir, 'other'), join(osPath, 'run-lists'));
  assert.deepEqual(await bootOf(places), []);
  await rm(join(osPath, 'run-lists'));
  await mkdir(join(osPath, 'run-lists/boot'), { recursive: true });
  await symlink(join(dir, 'plain'), join(osPath, 'run-lists/boot/linked'));
  const isRefused = (error: unknown): boolean =>
    error instanceof AppError &&
    error.code === 'RUN_LIST_INVALID' &&
    error.message.startsWith(`run list ${join(osPath, 'run-lists/boot')}: `) &&
    !error.message.includes('/proc/');
  await assert.rejects(bootOf(places), isRefused);
});

test('a file that is no script, and more scripts than there may be, are refused by name', async (t) => {
  const { dir, clusterDir, osPath } = await createPlaces(
    t,
    ...['cluster/boot/01-ok', 'cluster/boot/02-text', 'os/run-lists/boot/01-os'],
  );
  const places = { clusterDir, osPath: null, own };
  await writeFile(join(clusterDir, 'boot/02-text'), 'no interpreter\n');
  await assert.rejects(bootOf(places), { code: 'RUN_LIST_INVALID', message: /boot\/02-text: / });
  await rename(join(clusterDir, 'boot/02-text'), join(dir, 'os/run-lists/boot/03-os'));
  const file = join(osPath, 'run-lists/boot/03-os');
  await assert.rejects(bootOf({ ...places, osPath }), ({ message }: Error) =>
    message.startsWith(`run list ${file}: `),
  );
  for (let index = 2; index < 64; index += 1)
    await writeFile(join(clusterDir, `boot/more-${index}`), '#!/bin/sh\n');
  await assert.rejects(bootOf(places), {
    code: 'RUN_LIST_INVALID',
    message: /have 65 scripts, the limit is 64/,
  });
});
