import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { formatFile, formatSummary, hasPassed } from './report.ts';
import { type FileOptions, type FileResult, runFile } from './run-file.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-runner-'));
  await mkdir(join(directory, 'test'));
});
after(() => rm(directory, { recursive: true }));

/** Runs a file with this content as `npm test` does. */
async function runContent(content: string, limits?: FileOptions): Promise<FileResult> {
  await writeFile(join(directory, 'test/a.test.ts'), content);
  // Otherwise the runner would treat the nested file as part of this test.
  delete process.env['NODE_TEST_CONTEXT'];
  return runFile(directory, 'test/a.test.ts', new AbortController().signal, limits);
}

const outcomes = ({ tests }: FileResult): unknown =>
  tests.map(({ name, outcome }) => `${outcome}: ${name}`);
const head = "import { describe, test } from 'node:test';\n";

test('a file whose tests pass is one line, and its run passes', async () => {
  const result = await runContent(
    `${head}test('a', () => {}); describe('s', () => { test('b', () => {}); });`,
  );
  assert.deepEqual(outcomes(result), ['passed: a', 'passed: b']);
  assert.match(formatFile(result), /^ +\d+\.\d s {2}test\/a\.test\.ts: 2 passed\n$/);
  assert.equal(hasPassed([result], 0), true);
  assert.match(formatSummary([result], 0), /\n2 passed, 0 failed\n$/);
});

test('a test that fails is shown with its error, and the run fails', async () => {
  const result = await runContent(
    `${head}test('a', () => {}); test('b', () => { throw new Error('of b'); }); test('c', { skip: true }, () => {});`,
  );
  assert.deepEqual(outcomes(result), ['passed: a', 'failed: b', 'skipped: c']);
  assert.match(formatFile(result), /1 passed, 1 FAILED, 1 skipped\n[^]*Error: of b\n/);
  assert.equal(hasPassed([result], 0), false);
  assert.match(
    formatSummary([result], 0),
    /skipped:\n.*: c\n[^]*failed:\n.*: b\n {6}of b\n[^]*1 passed, 1 failed\n$/,
  );
});

test('a file that crashes, ends with a status or cannot be loaded has failed, whatever passed before', async () => {
  for (const content of [
    'process.kill(process.pid, 9);',
    `${head}test('a', () => {}); setTimeout(() => process.exit(3), 50);`,
    "import './not-there.ts';",
  ]) {
    const result = await runContent(content);
    assert.ok(
      result.tests.some(({ outcome }) => outcome === 'failed'),
      content,
    );
    assert.notEqual(result.report, '', content);
    assert.equal(hasPassed([result], 0), false, content);
  }
});

test('a test that never ended has failed, though its process ended well, and so has the file', async () => {
  const ends = 'setTimeout(() => process.exit(0), 50);';
  const waits = `async () => { ${ends} await new Promise((done) => setTimeout(done, 60_000)); }`;
  const result = await runContent(
    `${head}test('a', () => {}); test('b', ${waits}); test('c', () => {});`,
  );
  const failed = ['failed: test/a.test.ts', 'failed: b', 'failed: c'];
  assert.deepEqual(outcomes(result), ['passed: a', ...failed]);
  assert.match(
    formatFile(result),
    /\nb has no result: the process of test\/a\.test\.ts ended first\n/,
  );
  const nested = await runContent(`${head}describe('s', () => { test('b', ${waits}); });`);
  assert.deepEqual(outcomes(nested), ['failed: b']);
  const early = await runContent(
    `${head}await test('a', () => {}); process.exit(0); test('b', () => {});`,
  );
  assert.equal(hasPassed([early], 0), false);
});

test('a file whose tests pass and whose process does not end is ended, and has failed', async () => {
  const content = `${head}test('a', () => {}); setInterval(() => {}, 1000);`;
  const result = await runContent(content, { timeoutMs: 3000 });
  assert.equal(hasPassed([result], 0), false);
  assert.match(formatFile(result), /was ended after 3 s/);
});

test('a file that a failing test leaves hanging is ended soon after its last test, not at its limit', async () => {
  const content =
    `${head}import { after } from 'node:test'; import { createServer } from 'node:net';\n` +
    "test('a', () => { createServer().listen(0); throw new Error('of a'); });\n" +
    "describe('s', () => { test('slow', () => new Promise((done) => setTimeout(done, 1500))); });\n" +
    "after(() => process.stderr.write('cleaned up'));\n";
  const result = await runContent(content, { lingerMs: 500 });
  const file = 'failed: test/a.test.ts';
  assert.deepEqual(outcomes(result), ['failed: a', 'passed: slow', file, file]);
  assert.equal(hasPassed([result], 0), false);
  assert.match(
    formatFile(result),
    /Error: of a\n[^]*left hanging: ended 0\.5 s after its last test/,
  );
});

test('what is cleaned up behind the last test has its time', async () => {
  const slow = 'after(() => new Promise((done) => setTimeout(done, 500)));';
  const content = `${head}import { after } from 'node:test'; test('a', () => {}); ${slow}`;
  const result = await runContent(content, { lingerMs: 20_000 });
  assert.deepEqual(outcomes(result), ['passed: a']);
});

test('a file without a test has failed, and so has a run in which nothing ran or something did not begin', async () => {
  const empty = await runContent('export {};');
  assert.deepEqual(outcomes(empty), ['failed: test/a.test.ts']);
  assert.match(formatFile(empty), /no test ran in test\/a\.test\.ts/);
  assert.equal(hasPassed([], 0), false);
  const good = await runContent(`${head}test('a', () => {});`);
  assert.equal(hasPassed([good], 1), false);
  assert.match(formatSummary([good], 1), /\n1 files did not run\n1 passed, 0 failed\n$/);
});
