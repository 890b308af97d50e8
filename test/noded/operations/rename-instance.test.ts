import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { renameInstanceHandler } from '../../../noded/operations/rename-instance.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, type World } from './operation-lab.ts';

const web1 = instanceRecord({ name: 'web1', osType: 'debian' }, { installState: 'installed' });
const rename = (world: World = {}, newName = 'web2', changes: Partial<typeof web1> = {}) => {
  const lab = createOperationLab({ ...web1, ...changes }, world);
  const input = { opcode: 'INSTANCE_RENAME', name: 'web1', newName } as const;
  return { ...lab, ended: lab.run(renameInstanceHandler, input) };
};
/** Returns a world in which the definition has these scripts for the appliance. */
const scripts = (applianceScripts: Readonly<Record<string, string>>, installer = {}): World => ({
  osRegistry: { find: async () => ({ definition: { applianceScripts, hostScripts: {} } }) },
  installer: { enterRoom: async () => ({ [Symbol.dispose]: () => undefined }), ...installer },
});

test('an instance is renamed after its disks are found unused', async () => {
  const { ended, steps, record } = rename({}, 'web2', { osType: null });
  assert.deepEqual(await ended, { name: 'web2' });
  assert.deepEqual(steps, ['runner.checkDisksUnused', 'execute', 'instances.rename']);
  assert.equal(record()?.name, 'web2');
});

for (const [what, world, newName, expected] of [
  ['a running instance', { runner: { isRunning: () => true } }, 'web2', 'INSTANCE_STATE'],
  ['a taken name', {}, 'web1', 'INSTANCE_EXISTS'],
  [
    'a failing store',
    {
      instances: {
        findByName: async (name: string) => {
          if (name === 'web1') return web1;
          throw new AppError('STORE_UNAVAILABLE', 'no answer');
        },
      },
    },
    ...(['web2', 'STORE_UNAVAILABLE'] as const),
  ],
] as const) {
  test(`${what} refuses a rename, and nothing changes`, async () => {
    const { ended, steps } = rename(world, newName);
    await assert.rejects(ended, { code: expected });
    assert.ok(!steps.includes('execute'));
  });
}

test('an installed system is told its new name by the rename script, in a room of its own', async () => {
  const requests: unknown[] = [];
  const runScript = async ({ operation, script }: object & Record<string, unknown>) =>
    void requests.push({ operation, script });
  const { ended, steps } = rename(scripts({ rename: 'untrusted/rename' }, { runScript }));
  await ended;
  assert.deepEqual(steps.slice(-3), [
    'instances.rename',
    'installer.enterRoom',
    'installer.runScript',
  ]);
  assert.deepEqual(requests, [
    { operation: { script: 'rename', oldName: 'web1' }, script: { appliance: 'untrusted/rename' } },
  ]);
});

for (const [what, changes] of [
  ['an instance without an OS', { osType: null }],
  ['an instance that is not installed', { installState: 'created' }],
] as const) {
  test(`${what} is renamed without a script`, async () => {
    const { ended, lines, steps } = rename(scripts({ rename: 'x' }), 'web2', changes);
    await ended;
    assert.deepEqual([steps.at(-1), lines], ['instances.rename', []]);
  });
}

test('a definition without a rename script leaves the guest its host name, and says so', async () => {
  const { ended, lines, steps } = rename(scripts({}));
  await ended;
  assert.equal(steps.at(-1), 'instances.rename');
  assert.match(lines.join(), /^the guest keeps its host name: OS 'debian' has no rename script/);
});

test('a rename script that fails leaves the instance renamed, with a warning', async () => {
  const runScript = async (): Promise<never> => {
    throw new AppError('SCRIPT_FAILED', 'exit status 3');
  };
  const { ended, lines, record } = rename(scripts({ rename: 'x' }, { runScript }));
  assert.deepEqual(await ended, { name: 'web2' });
  assert.match(lines.join(), /^warn: Could not run OS rename script .*: exit status 3/);
  assert.equal(record()?.name, 'web2');
});
