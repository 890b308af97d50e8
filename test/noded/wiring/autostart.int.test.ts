import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { DEFAULT_AUTOSTART, type Autostart } from '#shared/contract/autostart.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { startAutostart } from '../../../noded/wiring/autostart.ts';
import type { MachineExitReason } from '../../../noded/vmm/machine.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { instanceRecord } from '../support/records.ts';

const THIS_BOOT = 'boot-2';

function down(name: string, autostart: Partial<Autostart> = {}, overrides = {}): InstanceRecord {
  return instanceRecord(
    { name },
    {
      uuid: `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padStart(12, '0')}`,
      ...{ primaryNode: 'node1', installState: 'installed', adminState: 'up' },
      autostart: { ...DEFAULT_AUTOSTART, ...autostart },
      ...overrides,
    },
  );
}

/** Creates a started node. The test decides how its jobs end. */
async function createNode(t: TestContext, records: InstanceRecord[], formerBoot = 'boot-1') {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-autostart-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const bootFile = join(dir, 'boot-id');
  if (formerBoot !== '') await writeFile(bootFile, `${formerBoot}\n`);
  /** All events, in order. */
  const events: string[] = [];
  const running = new Set<string>();
  const fails = new Map<string, number>();
  const pauses: number[] = [];
  const clock = new ManualClock();
  let underWay = 0;
  let mostUnderWay = 0;
  const names: string[] = [];
  const lab = {
    ...{ bootFile, events, running, fails, pauses, clock },
    store: { isAway: false },
    /** Number of questions to answer with "offline". */
    offlineFor: 0,
    /** Called while an instance is being started. */
    whileStarting: (): Promise<void> => turn(),
    get mostUnderWay() {
      return mostUnderWay;
    },
    start: (overrides = {}) =>
      startAutostart({
        index: {
          list: () => {
            if (!lab.store.isAway)
              return Promise.resolve(records.map((each) => ({ ...each, diskBytes: 0 })));
            lab.store.isAway = false;
            return Promise.reject(new AppError('STORE_UNAVAILABLE', 'away'));
          },
          doubt: () => undefined,
        },
        instances: {
          findByUuid: (uuid) => Promise.resolve(records.find((each) => each.uuid === uuid)),
          readSome: (uuids) => {
            const found = records.filter(({ uuid }) => uuids.includes(uuid));
            return Promise.resolve({
              readable: found.map((value) => ({ id: value.uuid, value })),
              bad: [],
            });
          },
        },
        owns: (node) => node === 'node1',
        isOffline: () => Promise.resolve(lab.offlineFor-- > 0),
        isRunning: (uuid) => running.has(uuid),
        jobs: {
          submit: (opcode: Opcode) => {
            assert.equal(opcode.opcode, 'INSTANCE_STARTUP');
            return Promise.resolve(names.push('name' in opcode ? opcode.name : ''));
          },
          watch: async function* (id) {
            const name = names[id - 1] ?? '';
            underWay += 1;
            mostUnderWay = Math.max(mostUnderWay, underWay);
            await lab.whileStarting();
            underWay -= 1;
            const left = fails.get(name) ?? 0;
            fails.set(name, left - 1);
            const status = left > 0 ? 'error' : 'success';
            events.push(`${name} ${status}`);
            const record = records.find((each) => each.name === name);
            if (status === 'success' && record !== undefined) running.add(record.uuid);
            // Autostart uses no other fields.
            yield { type: 'end', atMs: 0, job: { id, status, error: null } as JobRecord };
          },
        },
        ...{ bootFile, bootId: THIS_BOOT, maxStarts: 2, logger: silentLogger, clock },
        sleep: (ms: number) => {
          pauses.push(ms);
          events.push(`pause ${ms / 1000}`);
          return Promise.resolve();
        },
        ...overrides,
      }),
  };
  return lab;
}

test('after a reboot of the host what is configured up is started, and nothing else', async (t) => {
  const node = await createNode(t, [
    down('web1'),
    down('stopped', {}, { adminState: 'down' }),
    down('half', {}, { installState: 'failed' }),
    down('by-hand', { boot: false }),
    down('elsewhere', {}, { primaryNode: 'node2' }),
  ]);
  await using autostart = node.start();
  await autostart.settled;
  assert.deepEqual(node.events, ['web1 success']);
  assert.equal((await readFile(node.bootFile, 'utf8')).trim(), THIS_BOOT);
});

for (const [what, former] of [
  ['a restart of the daemon', THIS_BOOT],
  ['the first start of a daemon that notes boots', ''],
] as const) {
  test(`${what} starts nothing that was seen to end, unless it may be restarted`, async (t) => {
    const node = await createNode(t, [down('web1'), down('web2', { restarts: 1 })], former);
    await using autostart = node.start();
    await autostart.settled;
    assert.deepEqual(node.events, ['web2 success']);
    assert.equal((await readFile(node.bootFile, 'utf8')).trim(), THIS_BOOT);
  });
}

test('lower priorities come first, each is whole before the next, and has its delay', async (t) => {
  const node = await createNode(t, [
    down('app10', { priority: 200 }),
    down('app2', { priority: 200 }),
    down('db', { priority: 10, delayS: 30 }),
    down('cache', { priority: 100 }),
  ]);
  await using autostart = node.start({ maxStarts: 1 });
  await autostart.settled;
  assert.deepEqual(node.events, [
    ...['db success', 'pause 30', 'cache success', 'app2 success', 'app10 success'],
  ]);
});

test('no more than --max-starts are started at a time', async (t) => {
  const names = Array.from({ length: 9 }, (_, index) => `web${index}`);
  const node = await createNode(
    t,
    names.map((name) => down(name)),
  );
  await using autostart = node.start();
  await autostart.settled;
  assert.equal(node.events.length, 9);
  assert.equal(node.mostUnderWay, 2);
});

test('one that cannot be started is tried five times, later each time, and keeps no other', async (t) => {
  const node = await createNode(t, [down('a'), down('b'), down('c')]);
  node.fails.set('a', 99);
  node.fails.set('b', 1);
  await using autostart = node.start({ maxStarts: 1 });
  await autostart.settled;
  assert.equal(node.events.filter((event) => event === 'a error').length, 5);
  assert.deepEqual(node.events.filter((event) => /^[bc]/.test(event)).toSorted(), [
    'b error',
    'b success',
    'c success',
  ]);
  assert.deepEqual(
    node.pauses.toSorted((x, y) => x - y),
    [10_000, 10_000, 20_000, 30_000, 40_000],
  );
});

test('one that waits for its secrets is not started, others start without theirs', async (t) => {
  const secrets = { secretNames: ['rootpw'] };
  const node = await createNode(t, [
    down('waits', { lostSecrets: 'wait' }, secrets),
    down('starts', {}, secrets),
    down('none', { lostSecrets: 'wait' }),
  ]);
  await using autostart = node.start();
  await autostart.settled;
  assert.deepEqual(node.events.toSorted(), ['none success', 'starts success']);
});

test('a daemon that is stopped half way leaves the rest to the next', async (t) => {
  const records = [down('a'), down('b')];
  const node = await createNode(t, records);
  const reached = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  node.whileStarting = () => {
    reached.resolve();
    return go.promise;
  };
  const first = node.start({ maxStarts: 1 });
  await reached.promise;
  const stopped = first[Symbol.asyncDispose]();
  go.resolve();
  await stopped;
  assert.equal((await readFile(node.bootFile, 'utf8')).trim(), 'boot-1');
  await using second = node.start();
  await second.settled;
  assert.deepEqual(node.events, ['a success', 'b success']);
});

test('a store that is away while the host starts is waited for', async (t) => {
  const node = await createNode(t, [down('web1')]);
  node.store.isAway = true;
  await using autostart = node.start();
  await autostart.settled;
  assert.deepEqual(node.events, ['pause 10', 'web1 success']);
});

test('a host that comes back while it is marked offline starts its instances when the mark is gone', async (t) => {
  const node = await createNode(t, [down('web1')]);
  node.offlineFor = 30;
  const bootBefore: string[] = [];
  await using autostart = node.start({
    sleep: async (ms: number) => {
      node.events.push(`pause ${ms / 1000}`);
      bootBefore.push((await readFile(node.bootFile, 'utf8')).trim());
    },
  });
  await autostart.settled;
  assert.deepEqual(node.events, [...Array<string>(30).fill('pause 10'), 'web1 success']);
  assert.deepEqual([...new Set(bootBefore)], ['boot-1']);
  assert.equal((await readFile(node.bootFile, 'utf8')).trim(), THIS_BOOT);
});

test('a machine that crashed is started again as often as it may be, in eight hours', async (t) => {
  const web1 = down('web1', { restarts: 2 });
  const node = await createNode(t, [web1], THIS_BOOT);
  node.running.add(web1.uuid);
  await using autostart = node.start();
  await autostart.settled;
  const crash = async (reason: MachineExitReason): Promise<number> => {
    node.events.length = 0;
    node.running.delete(web1.uuid);
    autostart.machineEnded(web1.uuid, { reason });
    for (let count = 0; count < 20; count += 1) await turn();
    return node.events.filter((event) => event === 'web1 success').length;
  };
  assert.equal(await crash('guest-shutdown'), 0, 'its guest wanted it');
  assert.equal(await crash('host-request'), 0, 'an operator wanted it');
  assert.equal(await crash('crashed'), 1);
  assert.equal(await crash('unknown'), 1);
  assert.equal(await crash('guest-panic'), 0, 'twice is enough');
  node.clock.advance(8 * 3600 * 1000 + 1);
  assert.equal(await crash('crashed'), 1);
});

test('a machine that crashes is left as it is where nothing else was said', async (t) => {
  const node = await createNode(t, [down('web1')], THIS_BOOT);
  await using autostart = node.start();
  autostart.machineEnded(down('web1').uuid, { reason: 'crashed' });
  await autostart.settled;
  for (let count = 0; count < 20; count += 1) await turn();
  assert.deepEqual(node.events, []);
});
