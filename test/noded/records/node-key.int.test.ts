import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import nacl from 'tweetnacl';
import { encodeKey, loadNodeKey } from '../../../noded/records/node-key.ts';

test('a node makes its key once, for root only, and refuses a damaged one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-node-key-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'node.key');
  const made = await loadNodeKey(path);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await readFile(path, 'utf8')).trim(), encodeKey(made.secretKey));
  assert.deepEqual(await loadNodeKey(path), made);
  assert.deepEqual(nacl.box.keyPair.fromSecretKey(made.secretKey).publicKey, made.publicKey);
  for (const damaged of ['', 'AAAA', encodeKey(made.secretKey).slice(4)]) {
    await writeFile(path, damaged);
    await assert.rejects(loadNodeKey(path), { code: 'FILE_UNREADABLE' });
    assert.equal(await readFile(path, 'utf8'), damaged);
  }
  await assert.rejects(loadNodeKey(folder), { code: 'FILE_UNREADABLE' });
});
