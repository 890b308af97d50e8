import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HookBook } from '#shared/contract/hook-book.ts';
import { refuseLateHooks } from '../../../noded/operations/check-install.ts';

const step = { label: "step 'x'", file: 'cluster/10.yaml', fields: ['commands'] };
const book = (stage: HookBook['stages'][number]['stage']): HookBook => ({
  stages: [{ stage, steps: [step] }],
  remarks: [],
});
const host = { path: '/srv/os/x/create', digest: 'a' };

test('a hook that would run after the script which it is to run before is refused by its file', () => {
  const decision = { os: null, scripts: { host, appliance: null } };
  assert.throws(() => refuseLateHooks(decision, book('os-scripts.before')), {
    code: 'VALIDATION',
    message: /cluster\/10\.yaml/,
  });
});

test('hooks around a script are accepted wherever their order can be kept', () => {
  const both = { os: null, scripts: { host, appliance: 'untrusted/create' } };
  const own = { os: null, scripts: { host: null, appliance: 'untrusted/create' } };
  for (const decision of [both, own]) refuseLateHooks(decision, book('os-scripts.before'));
  const alone = { os: null, scripts: { host, appliance: null } };
  for (const stage of ['image.after', 'os-scripts', 'os-scripts.after'] as const)
    refuseLateHooks(alone, book(stage));
  refuseLateHooks(alone, null);
});
