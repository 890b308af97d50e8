import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';

const agent = join(import.meta.dirname, '../../metad/guest/agent.sh');

test('the agent reads the interpreter of a script, with and without a final newline', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-interpreter-'));
  t.after(() => rm(folder, { recursive: true }));
  const text = await readFile(agent, 'utf8');
  const [read] = /^interpreter_of\(\) \{[^]*?^\}$/m.exec(text) ?? [];
  assert.ok(read);
  for (const [script, interpreter] of [
    ['#!/bin/true', '/bin/true'],
    ['#! /bin/sh -e *\ntrue\n', '/bin/sh'],
    ['#!\n', ''],
  ] as const) {
    await writeFile(join(folder, 'script'), script);
    const command = `set -u\n${read}\ninterpreter_of "$1"`;
    const { stdout, stderr } = await run('sh', ['-c', command, 'sh', join(folder, 'script')]);
    assert.deepEqual([stdout.trimEnd(), stderr], [interpreter, '']);
  }
});
