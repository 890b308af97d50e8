import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeHalves, writeDurably } from '#shared/files/durable.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-durable-'));
after(() => rmSync(directory, { recursive: true }));

/** Returns the system calls of a program with this code. */
function trace(name: string, code: string, calls: string): readonly string[] {
  const output = join(directory, `${name}.trace`);
  const program = join(directory, `${name}.ts`);
  const module = fileURLToPath(import.meta.resolve('#shared/files/durable.ts'));
  writeFileSync(
    program,
    `import { makeDirectoryDurably, writeDurably } from ${JSON.stringify(module)};\n${code}`,
  );
  execFileSync('strace', [
    ...['-f', '-y', '-o', output, '-e', `trace=${calls}`],
    ...[process.execPath, program],
  ]);
  return readFileSync(output, 'utf8').split('\n');
}

/**
 * Returns the system calls of a process that writes a file, in order: `write`, `fsync`, `rename`,
 * `link`.
 */
function traceWrite(name: string, options: string): readonly string[] {
  const code = `await writeDurably(${JSON.stringify(join(directory, name))}, 'content', ${options});`;
  return trace(name, code, 'write,pwrite64,fsync,rename,link')
    .filter((line) => line.includes(`${directory}/${name}`) || line.includes(`fsync(`))
    .filter((line) => !line.includes('unfinished') || /fsync|rename|link|write/.test(line))
    .map((line) => {
      const call = /\b(write|pwrite64|fsync|rename|link)\(/.exec(line)?.[1] ?? '?';
      return call === 'fsync' && line.includes(`<${directory}>`) ? 'fsync directory' : call;
    });
}

test('a directory that is made has its name on the disk, one that a killed process made too', () => {
  const path = join(directory, 'parent', 'made');
  const code = `await makeDirectoryDurably(${JSON.stringify(path)}, 0o700);`;
  const syncedBy = (): readonly string[] =>
    trace('maker', code, 'fsync').flatMap((line) => /fsync\(\d+<([^>]+)>/.exec(line)?.[1] ?? []);
  assert.deepEqual(syncedBy(), [join(directory, 'parent'), directory]);
  assert.deepEqual(syncedBy(), [join(directory, 'parent')]);
});

test('the bytes are synced before the name, and the name before it returns', () => {
  const order = ['fsync', 'rename', 'fsync directory'];
  const replaced = traceWrite('replaced', '{ mode: 0o600 }');
  assert.deepEqual(
    replaced.filter((call) => call !== 'write' && call !== 'pwrite64'),
    order,
  );
  assert.ok(replaced.indexOf('fsync') > replaced.findIndex((call) => call.includes('write')));
  const made = traceWrite('made', '{ mode: 0o600, isNew: true }');
  assert.deepEqual(
    made.filter((call) => !call.includes('write')),
    ['fsync', 'link', 'fsync directory'],
  );
});

test('a new file never takes the place of one that is there, and leaves nothing beside it', async () => {
  const path = join(directory, 'key');
  await writeDurably(path, 'first', { mode: 0o600, isNew: true });
  await assert.rejects(writeDurably(path, 'second', { mode: 0o600, isNew: true }), {
    code: 'EEXIST',
  });
  assert.equal(await readFile(path, 'utf8'), 'first');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.startsWith('key')),
    ['key'],
  );
});

test('what a killed process has left of a file is removed, and nothing else', async () => {
  const path = join(directory, 'index.json');
  for (const name of ['index.json.half-1', 'index.json.half-2', 'index.json', 'index.json.bak'])
    writeFileSync(join(directory, name), 'x');
  await removeHalves([path, join(directory, 'no/such/file')]);
  assert.deepEqual((await readdir(directory)).filter((name) => name.startsWith('index')).sort(), [
    'index.json',
    'index.json.bak',
  ]);
});
