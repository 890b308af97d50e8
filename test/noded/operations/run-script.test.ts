import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findScript, runScriptHandler } from '../../../noded/operations/run-script.ts';

const find = (wanted: string, ...scripts: readonly string[]): string =>
  findScript(
    { name: 'web1' },
    wanted,
    scripts.map((name) => ({ name })),
  ).name;

test('a script is found by its name, with or without its number', () => {
  assert.equal(find('backup', '01-deploy', '02-backup'), '02-backup');
  assert.equal(find('02-backup', '01-backup', '02-backup'), '02-backup');
});

test('a name that means several scripts is refused with their numbers', () => {
  assert.throws(() => find('backup', '01-backup', '02-deploy', '03-backup'), {
    code: 'NOT_FOUND',
    message: "the operational list of 'web1' has several scripts 'backup'",
    hint: 'Name one by its number: 01-backup, 03-backup',
  });
});

test('the job reports what the script prints, and how much of it was dropped', async () => {
  const reported: unknown[] = [];
  const handler = runScriptHandler({
    instances: { findByName: () => Promise.resolve({ name: 'web1', runLists: null }) },
    runner: { running: () => ({}) },
    lifecycles: {
      listScripts: () => Promise.resolve([{ name: '01-backup', inputs: null }]),
      run: (_instance: unknown, { onOutput }: { onOutput: (output: object) => void }) => {
        onOutput({ text: 'one\n', lostBytes: 0 });
        onOutput({ text: '', lostBytes: 7 });
        return Promise.resolve(0);
      },
    },
  } as unknown as Parameters<typeof runScriptHandler>[0]);
  const opcode = {
    opcode: 'INSTANCE_RUN_SCRIPT',
    name: 'web1',
    script: 'backup',
    inputs: {},
  } as const;
  const { signal } = new AbortController();
  const execute = await handler.prepare(opcode, signal);
  await execute({
    jobId: 1,
    signal,
    report: {
      scriptOutput: (text: string) => reported.push(text),
      log: (text: string, level: string) => reported.push([text, level]),
    },
  } as never);
  assert.deepEqual(reported, ['one\n', ['7 bytes of output were dropped', 'warn']]);
});
