import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { modifyInstanceHandler } from '../../../noded/operations/change-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import type { HookQuery } from '../../../noded/provision/os/check-hooks.ts';
import { modifyOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, type World } from './operation-lab.ts';

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

const web1 = instanceRecord({
  ...{ name: 'web1', communication: true, nics: [{ mode: 'user' }] },
  disks: [{ sizeBytes: 512 }, { sizeBytes: 1024 }],
});
type Modify = Omit<Extract<OpcodeInput, { opcode: 'INSTANCE_SET_PARAMS' }>, 'opcode' | 'name'>;
const modify = (asked: Modify, world: World = {}, stored = web1) => {
  const lab = createOperationLab(stored, world);
  const input = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1', ...asked } as const;
  return { ...lab, ended: lab.run(modifyInstanceHandler, input) };
};
const afterPrepare = (steps: readonly string[]): readonly string[] =>
  steps.slice(steps.indexOf('execute') + 1);

/** A running QEMU process that has these parts in its ports. */
function running(...plugged: readonly string[]): World {
  const kept = { machine: { plugged: async () => new Set(plugged) } };
  return {
    runner: { isRunning: () => true, running: () => kept, unplug: async () => true },
  };
}

test('a setting of a stopped instance is one commit', async () => {
  const { ended, steps, record } = modify({ metadata: { role: 'db' } });
  assert.deepEqual(await ended, { name: 'web1' });
  assert.deepEqual(afterPrepare(steps), ['instances.update']);
  assert.deepEqual(record()?.metadata, { role: 'db' });
});

test('a setting of a running instance reaches its guest after the commit', async () => {
  const { ended, steps } = modify({ metadata: { role: 'db' } }, running());
  await ended;
  assert.deepEqual(afterPrepare(steps), ['instances.update', 'runner.republish']);
});

test('the disks of a stopped instance change together with its record', async () => {
  const { ended, steps, record } = modify({ disks: [{ action: 'remove', which: 1 }] });
  await ended;
  assert.deepEqual(steps.slice(0, 4), [
    ...['runner.checkDisksUnused', 'disks.settle', 'disks.activate', 'disks.checkSizes'],
  ]);
  assert.deepEqual(afterPrepare(steps), ['disks.change', 'instances.update']);
  assert.equal(record()?.disks.length, 1);
});

test('only an added disk needs space', async () => {
  const added = modify({ disks: [{ action: 'add', disk: { sizeBytes: 512 } }] });
  await added.ended;
  assert.ok(added.steps.includes('disks.checkSpace'));
  const removed = modify({ disks: [{ action: 'remove', which: 1 }] });
  await removed.ended;
  assert.ok(!removed.steps.includes('disks.checkSpace'));
});

test('a disk of a running instance leaves QEMU before its file is removed', async () => {
  const [first, second = assert.fail()] = web1.disks;
  const plugged = { ...second, port: 0 };
  const stored = { ...web1, disks: [first ?? assert.fail(), plugged] };
  const { ended, steps } = modify(
    { disks: [{ action: 'remove', which: 1 }] },
    running(plugged.uuid),
    stored,
  );
  await ended;
  const after = afterPrepare(steps);
  assert.ok(after.indexOf('runner.unplug') >= 0, after.join());
  assert.ok(after.indexOf('runner.unplug') < after.indexOf('disks.change'));
  assert.equal(after.at(-1), 'runner.republish');
});

test('an added part of a running instance is attached after its commit', async () => {
  const { ended, steps, record } = modify(
    { nics: [{ action: 'add', nic: { mode: 'user' } }] },
    running(),
  );
  await ended;
  const after = afterPrepare(steps);
  assert.deepEqual(after.slice(0, 2), ['instances.update', 'runner.plug']);
  assert.equal(record()?.nics[1]?.port, 0);
});

test('an added part of a stopped instance has no port: it is there from the next start', async () => {
  const { ended, record } = modify({ nics: [{ action: 'add', nic: { mode: 'user' } }] });
  await ended;
  assert.equal(record()?.nics[1]?.port, undefined);
});

for (const [what, asked, check] of [
  ['a BootEnv', { bootEnv: 'rescue' }, 'bootViews.check'],
  ['a parameter', { osParameters: { a: 'b' } }, 'bootViews.check'],
  ['the channel', { communication: true }, 'lifecycles.check'],
  ['a profile', { profiles: [] }, 'lifecycles.check'],
  ['run lists', { runLists: { boot: [], operational: [], decommission: [] } }, 'lifecycles.check'],
  ['the image', { osImage: 'https://example.com/a.raw' }, 'images.check'],
] as const satisfies readonly (readonly [string, Modify, string])[]) {
  test(`a change of ${what} is checked by what reads it: ${check}`, async () => {
    const { ended, steps } = modify(asked);
    await ended;
    assert.ok(steps.slice(0, steps.indexOf('execute')).includes(check), steps.join());
    const other = modify({ metadata: { role: 'db' } });
    await other.ended;
    assert.ok(!other.steps.includes(check));
  });
}

/** Returns more than half of the metadata that an instance may have. */
const wide = (key: string) => {
  const names = Array.from({ length: 9 }, (_, n) => `${key}${n}`);
  return { metadata: Object.fromEntries(names.map((name) => [name, 'x'.repeat(2 ** 16 - 16)])) };
};

test('metadata cannot grow beyond its table by small changes', async () => {
  const stored = { ...web1, ...wide('a') };
  await assert.rejects(modify(wide('b'), {}, stored).ended, { code: 'VALIDATION' });
  const full = { ...web1, metadata: { ...wide('a').metadata, ...wide('b').metadata } };
  // A record that is older than the limit takes other changes.
  await modify({ tags: ['blue'] }, {}, full).ended;
});

test('a running instance warns of lost secrets only when it is stopped', async () => {
  const asked = { osParametersSecret: { password: 'x' } };
  const [stopped, runs] = [modify(asked), modify(asked, running())];
  await Promise.all([stopped.ended, runs.ended]);
  assert.match(stopped.lines.join('\n'), /never stored/);
  assert.doesNotMatch(runs.lines.join('\n'), /never stored/);
});

test('ports are corrected by QEMU only before a change of parts', async () => {
  const [first = assert.fail()] = web1.disks;
  const stored = { ...web1, disks: [{ ...first, port: 0 }] };
  const asked: string[] = [];
  const plugged = async () => {
    asked.push('plugged');
    return new Set([first.uuid]);
  };
  const world: World = {
    runner: { isRunning: () => true, running: () => ({ machine: { plugged } }) },
  };
  await modify({ metadata: { role: 'db' } }, world, stored).ended;
  assert.deepEqual(asked, []);
  await modify({ nics: [{ action: 'add', nic: { mode: 'user' } }] }, world, stored).ended;
  assert.ok(asked.length > 0);
});
