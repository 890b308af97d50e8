import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { collectHooks } from '../../../../noded/provision/os/collect-hooks.ts';

const folder = mkdtempSync(join(tmpdir(), 'gnt-collect-hooks-'));
const clusterDir = join(folder, 'cluster');
const osPath = join(folder, 'os');
after(() => rmSync(folder, { recursive: true }));
beforeEach(() => {
  for (const path of [clusterDir, osPath]) rmSync(path, { recursive: true, force: true });
  for (const path of [clusterDir, join(osPath, 'hooks')]) mkdirSync(path, { recursive: true });
});

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const put = (path: string, content: string | Buffer = path): void =>
  writeFileSync(join(folder, path), content);

test('documents come as cluster, OS, instance, by name within each, as the bytes that they are', async () => {
  const bytes = Buffer.from([0, 255, 10]);
  put('cluster/20-b.yml');
  put('cluster/100-a.yaml', bytes);
  put('cluster/README');
  put('os/hooks/z.yaml');
  mkdirSync(join(osPath, 'hooks/deeper'));
  const found = await collectHooks({
    clusterDir,
    osPath,
    instance: [{ name: 'a.yaml', content: base64('own') }],
  });
  assert.deepEqual(found, [
    { source: 'cluster', name: '100-a.yaml', content: base64(bytes) },
    { source: 'cluster', name: '20-b.yml', content: base64('cluster/20-b.yml') },
    { source: 'os', name: 'z.yaml', content: base64('os/hooks/z.yaml') },
    { source: 'instance', name: 'a.yaml', content: base64('own') },
  ]);
});

test('without folders there are none', async () => {
  const nowhere = join(folder, 'nowhere');
  assert.deepEqual(await collectHooks({ clusterDir: nowhere, osPath: nowhere, instance: [] }), []);
  assert.deepEqual(await collectHooks({ clusterDir, osPath: null, instance: [] }), []);
});

test("an OS definition cannot have the node's files read by a link; the cluster's folder may have links", async () => {
  put('elsewhere.yaml', 'elsewhere');
  symlinkSync('../elsewhere.yaml', join(clusterDir, 'a.yaml'));
  const [linked] = await collectHooks({ clusterDir, osPath: null, instance: [] });
  assert.equal(linked?.content, base64('elsewhere'));
  symlinkSync('../../elsewhere.yaml', join(osPath, 'hooks/a.yaml'));
  await assert.rejects(collectHooks({ clusterDir, osPath, instance: [] }), {
    code: 'FILE_UNREADABLE',
  });
  rmSync(join(osPath, 'hooks'), { recursive: true });
  symlinkSync(clusterDir, join(osPath, 'hooks'));
  const found = await collectHooks({ clusterDir, osPath, instance: [] });
  assert.deepEqual(
    found.map(({ source }) => source),
    ['cluster'],
  );
});

test('what is too large, or no file, is refused with its path', async () => {
  put('cluster/large.yaml', Buffer.alloc(1024 * 1024 + 1));
  await assert.rejects(collectHooks({ clusterDir, osPath: null, instance: [] }), {
    code: 'FILE_UNREADABLE',
    message: /cluster\/large\.yaml/,
  });
  const content = Buffer.alloc(1024 * 1024).toString('base64');
  const instance = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, content }));
  await assert.rejects(
    collectHooks({ clusterDir: join(folder, 'nowhere'), osPath: null, instance }),
    { code: 'VALIDATION', message: /hooks of this installation have \d+ bytes/ },
  );
});
