import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { modifyInstanceHandler } from '../../../noded/operations/change-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import type { HookQuery } from '../../../noded/provision/os/check-hooks.ts';
import { modifyOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const STORED = { name: '10-old.yaml', content: 'b2xk' };
const GIVEN = { name: '20-new.yaml', content: 'bmV3' };

/**
 * Prepares a modification of an instance with a hook, and returns the queries of the hook checker.
 */
async function prepare(
  input: Parameters<typeof modifyOpcode>[0],
  check: (query: HookQuery) => void = () => undefined,
): Promise<readonly HookQuery[]> {
  const queries: HookQuery[] = [];
  const dependencies = {
    instances: {
      findByName: async () => instanceRecord({}, { osType: 'debian', hooks: [STORED] }),
    },
    clusters: { load: async () => ({ appliance: null }), loadOs: async () => ({}) },
    osRegistry: { find: async (osType: string) => ({ definition: { path: `/srv/os/${osType}` } }) },
    hookChecker: {
      check: async (query: HookQuery) => {
        queries.push(query);
        check(query);
      },
    },
  } as unknown as OperationDependencies;
  const { signal } = new AbortController();
  await modifyInstanceHandler(dependencies).prepare(modifyOpcode(input), signal);
  return queries;
}

test('modify checks the given hooks as a reinstallation of the OS would use them', async () => {
  const [query] = await prepare({ hooks: [GIVEN] });
  assert.deepEqual(query?.instance, [GIVEN]);
  assert.deepEqual([query.osPath, query.isReinstall], ['/srv/os/debian', true]);
});

test('modify is refused when its hooks are', async () => {
  const refuse = (): never => {
    throw new AppError('VALIDATION', '20-new.yaml: unknown stage');
  };
  await assert.rejects(prepare({ hooks: [GIVEN] }, refuse), {
    message: '20-new.yaml: unknown stage',
  });
});

test('modify checks no hooks when it changes or removes none', async () => {
  assert.deepEqual(await prepare({ metadata: { role: 'db' } }), []);
  assert.deepEqual(await prepare({ hooks: [] }), []);
});
