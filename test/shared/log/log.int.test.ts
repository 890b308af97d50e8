import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { describeError } from '#shared/log/describe-error.ts';
import { createLogger, type Logger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';

function openLog(t: TestContext): { logger: Logger; records: () => Record<string, unknown>[] } {
  const dir = mkdtempSync(join(tmpdir(), 'gnt-log-'));
  const path = join(dir, 'log');
  const fd = openSync(path, 'w');
  t.after(() => {
    closeSync(fd);
    rmSync(dir, { recursive: true });
  });
  return {
    logger: createLogger({ program: 'gnt-test', level: 'info', fd }),
    records: () =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

test('writes one JSON object a line, at once, with event, level, program and facts', (t) => {
  const { logger, records } = openLog(t);
  logger.info('channel.up', { device: 'gnt.com.0' });
  logger.debug('not.kept');
  const [record, ...others] = records();
  assert.deepEqual(others, []);
  assert.equal(record?.['event'], 'channel.up');
  assert.equal(record['level'], 'info');
  assert.equal(record['program'], 'gnt-test');
  assert.equal(record['device'], 'gnt.com.0');
});

test('a child logger adds its facts to every record', (t) => {
  const { logger, records } = openLog(t);
  logger.child({ job: 7 }).child({ instance: 'web1' }).warn('x');
  assert.equal(records()[0]?.['job'], 7);
  assert.equal(records()[0]?.['instance'], 'web1');
});

test('text with line breaks stays one record', (t) => {
  const { logger, records } = openLog(t);
  logger.info('x', { text: 'one\ntwo\n{"event":"forged"}' });
  assert.equal(records().length, 1);
});

test('an error is written with its cause, a secret is not written at all', (t) => {
  const { logger, records } = openLog(t);
  const cause = new Error('deep');
  logger.error('x', {
    err: new AppError('DISK_FULL', 'full', { cause }),
    secret: new Secret('s3cret-V4lue'),
  });
  const text = JSON.stringify(records());
  assert.match(text, /full/);
  assert.match(text, /deep/);
  assert.ok(!text.includes('s3cret-V4lue'));
});

test('a record that finds no room is no reason to end, and keeps nobody waiting', (t) => {
  const fd = openSync('/dev/full', 'w');
  t.after(() => closeSync(fd));
  const logger = createLogger({ program: 'gnt-test', level: 'info', fd });
  const before = process.memoryUsage().rss;
  for (let count = 0; count < 20_000; count += 1) logger.info('disk.full', { count });
  assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
});

test('an error that quotes an argument is written without it, and with its frames', (t) => {
  const { logger, records } = openLog(t);
  const value = 'k3y-of-the-guest\0tail';
  for (const fail of [
    () => spawnSync('true', { env: { OSP_KEY: value } }),
    () => openSync(value, 'r'),
    () => JSON.parse(`{"key": ${value}`) as unknown,
    () => new URL(`http://${value}@[/`),
    () => request({ headers: { [value]: 'x' } }),
    () => Buffer.from('x', value as 'utf8'),
  ])
    assert.throws(fail, (err: unknown) => {
      logger.error('x', { err: new AggregateError([new Error('deep', { cause: err })]) });
      return true;
    });
  assert.equal(records().length, 6);
  assert.doesNotMatch(JSON.stringify(records()), /k3y|tail/);
  for (const { err } of records()) assert.match(JSON.stringify(err), /at [^"]*log.int.test.ts:\d+/);
});

test('a message that looks like frames adds none', () => {
  const error = new Error('x\n    at k3y (/srv/k3y:1:2)');
  assert.doesNotMatch(JSON.stringify(describeError(error, () => '')), /k3y/);
});
