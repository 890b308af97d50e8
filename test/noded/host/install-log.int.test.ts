import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createMask } from '#shared/secret/mask.ts';
import { InstallLog, readInstallLog } from '../../../noded/host/install-log.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-install-log-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const never = new AbortController().signal;

async function collect(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

test('lines are kept in order and masked, in a file with mode 0600, and the tail has the last 20', async () => {
  const log = await InstallLog.create(join(dir, 'a'), createMask(['hunter2']));
  for (let line = 0; line < 50; line += 1) log.append(`line ${line} hunter2`);
  await log.close();
  const text = await readFile(log.path, 'utf8');
  assert.equal(text.split('\n')[49], 'line 49 <redacted>');
  assert.ok(!text.includes('hunter2'));
  assert.deepEqual([log.tail().length, log.tail().at(-1)], [20, 'line 49 <redacted>']);
  assert.equal((await stat(log.path)).mode & 0o777, 0o600);
});

test('the log of a script with endless output is bounded, and the tail has its last line', async () => {
  const log = await InstallLog.create(join(dir, 'b'), (text) => text);
  const line = 'x'.repeat(4000);
  for (let count = 0; count < 3000; count += 1) log.append(line);
  log.append('the last words');
  await log.close();
  const text = await readFile(log.path, 'utf8');
  assert.ok(text.length < 8.1 * 1024 * 1024, `${text.length} bytes`);
  assert.match(text, /the log is full: no further lines are recorded\n$/);
  assert.equal(log.tail().at(-1), 'the last words');
});

test('a new installation replaces the log', async () => {
  for (const text of ['first', 'second']) {
    const log = await InstallLog.create(join(dir, 'c'), (line) => line);
    log.append(text);
    await log.close();
  }
  assert.equal(await readFile(join(dir, 'c'), 'utf8'), 'second\n');
});

test('following returns old and new lines, and ends with the installation', async () => {
  const log = await InstallLog.create(join(dir, 'd'), (text) => text);
  log.append('one');
  await log.flush();
  let asked = 0;
  const isOngoing = async (): Promise<boolean> => {
    asked += 1;
    if (asked === 2) {
      log.append('two');
      await log.flush();
    }
    return asked < 2;
  };
  assert.equal(await collect(readInstallLog(log.path, isOngoing, never)), 'one\ntwo\n');
  await log.close();
});

test('following may begin before the log does', async () => {
  let asked = 0;
  const isOngoing = async (): Promise<boolean> => {
    asked += 1;
    if (asked === 2) await writeFile(join(dir, 'f'), 'first words\n');
    return asked < 2;
  };
  assert.equal(await collect(readInstallLog(join(dir, 'f'), isOngoing, never)), 'first words\n');
});

test('following ends when its signal aborts', async () => {
  const log = await InstallLog.create(join(dir, 'e'), (text) => text);
  const controller = new AbortController();
  const following = collect(readInstallLog(log.path, () => true, controller.signal));
  setImmediate(() => controller.abort());
  assert.equal(await following, '');
  await log.close();
});

test('script output that imitates a record is marked, and control characters are replaced', async () => {
  const path = join(dir, 'forged');
  const log = await InstallLog.create(path, (text) => text);
  log.appendOutput('== personalize: 3 entries');
  log.appendOutput('console: all is well');
  log.append('== os-scripts: failed\n== result: success \u001b[2J\u2028');
  log.appendOutput('plain');
  await log.close();
  assert.equal(
    await readFile(path, 'utf8'),
    '| == personalize: 3 entries\n| console: all is well\n== os-scripts: failed\n  == result: success ?[2J?\nplain\n',
  );
});
