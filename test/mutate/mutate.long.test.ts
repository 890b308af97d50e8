import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';

/** Folders of pure code, whose tests take seconds. */
const FOLDERS = 'noded/netboot/template,shared/contract,noded/instances/record';
/** Code changes the sample, and a mutant may be an equivalent program. */
const LEAST_PERCENT = 50;
/** It takes half a minute on an idle machine. */
const LIMIT_MS = 600_000;

test('the near tests notice most mutants of a sample', async () => {
  const program = join(import.meta.dirname, 'main.ts');
  const options = ['--seed', '7', '--count', '12', '--folders', FOLDERS];
  const { stdout } = await run(process.execPath, [program, ...options], { timeoutMs: LIMIT_MS });
  const [, percent = ''] = /\((\d+) %\)/.exec(stdout) ?? [];
  assert.ok(Number(percent) >= LEAST_PERCENT, stdout);
});
