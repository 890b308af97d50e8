import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';

function pathsOf(paths: RootPaths): readonly string[] {
  const { networkNamespace, machineWallTable, osSearchPath, ...rest } = paths;
  assert.ok(networkNamespace && machineWallTable);
  return [...Object.values(rest).map(String), ...osSearchPath];
}

test('every path is below the root', () => {
  for (const path of pathsOf(createRootPaths('/tmp/node-a'))) {
    assert.ok(path === '/tmp/node-a' || path.startsWith('/tmp/node-a/'), path);
  }
});

test('at the root of the machine, paths and namespace have their plain names', () => {
  const paths = createRootPaths('/');
  assert.equal(paths.nodedSocket, '/run/gnt/noded.sock');
  assert.equal(paths.storeFile, '/var/lib/gnt/store.sqlite');
  assert.equal(paths.networkNamespace, 'gnt-com');
});

test('two roots share neither a path nor a namespace', () => {
  const [a, b] = [createRootPaths('/tmp/a'), createRootPaths('/tmp/b')];
  assert.notEqual(a.networkNamespace, b.networkNamespace);
  assert.notEqual(a.machineWallTable, b.machineWallTable);
  const ofB = new Set(pathsOf(b));
  assert.deepEqual(
    pathsOf(a).filter((path) => ofB.has(path)),
    [],
  );
});
