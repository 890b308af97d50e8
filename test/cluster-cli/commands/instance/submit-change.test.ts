import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wholeName } from '../../../../cluster-cli/commands/instance/submit-change.ts';
import { failureOfApi } from '../../../../cluster-cli/failures/failure.ts';
import type { Context } from '../../../../cluster-cli/terminal/context.ts';

const refusal = (code: string) =>
  failureOfApi(404, { code, message: 'm', hint: null, details: {} });

/** Resolves `web` on a terminal or in a pipe, with a daemon that gives this answer. */
function resolve(answer: { readonly name: string } | Error, isTTY = true, force = false) {
  const ask = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
  const context = { terminal: { stdin: { isTTY } }, client: async () => ({ ask }) };
  return wholeName(context as unknown as Context, 'web', { force });
}

test('a question names the whole instance, also for an abbreviation', async () => {
  assert.equal(await resolve({ name: 'web1.example.com' }), 'web1.example.com');
});

test('without a question the name stays as typed, so that no abbreviation removes disks', async () => {
  assert.equal(await resolve({ name: 'web1.example.com' }, false), 'web');
  assert.equal(await resolve({ name: 'web1.example.com' }, true, true), 'web');
});

test('the name of an orphan stays as typed, and other failures end the command', async () => {
  assert.equal(await resolve(refusal('INSTANCE_NOT_FOUND')), 'web');
  await assert.rejects(resolve(refusal('STORE_UNAVAILABLE')), { code: 'STORE_UNAVAILABLE' });
});
