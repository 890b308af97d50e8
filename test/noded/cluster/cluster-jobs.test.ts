import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { clusterJobs, type ClusterJobsDependencies } from '../../../noded/cluster/cluster-jobs.ts';
import { sampleJob } from '../../lab/sample-job.ts';
import { createOpcode, parseOpcode } from '../support/opcodes.ts';

const [OWN, OTHER] = ['node1.example.com', 'node2.example.com'];

interface Scene {
  /** Node of the one instance, web1; null: there is none. */
  readonly instanceOn?: string | null;
  readonly orphans?: readonly {
    readonly uuid: string;
    readonly name: string;
    readonly node: string;
  }[];
  readonly removedAtMs?: number | null;
  readonly job?: Partial<JobRecord>;
  /** Code of the error when another node is asked. */
  readonly refusal?: 'NODE_UNREACHABLE' | 'NODE_OFFLINE' | 'NODE_NOT_FOUND';
}

/** Jobs of one node, with the calls of its own jobs and the nodes that it asks. */
function create({ instanceOn = null, orphans = [], removedAtMs = null, job = {}, refusal }: Scene) {
  const calls: string[] = [];
  const own = {
    submit: async ({ opcode }: Opcode) => (calls.push(`own ${opcode}`), 7),
    dryRun: async ({ opcode }: Opcode) => (calls.push(`own try ${opcode}`), {}),
    cancel: async (id: number) => void calls.push(`own cancel ${id}`),
    get: async (id: number) => sampleJob({ id, node: OWN, ...job }),
    watch: async function* (id: number) {
      calls.push(`own watch ${id}`);
      yield* [];
    },
  };
  const dependencies = {
    nodeName: OWN,
    peers: {
      open: async (node: string) => {
        calls.push(`ask ${node}`);
        throw new AppError(refusal ?? 'NODE_UNREACHABLE', 'it does not answer');
      },
    },
    nodes: { names: async () => [OWN, OTHER] },
    instances: {
      findByName: async (name: string) => {
        if (instanceOn === null) throw new AppError('INSTANCE_NOT_FOUND', name);
        return { name, uuid: 'u', primaryNode: instanceOn };
      },
    },
    overview: { orphans: async () => orphans },
    membership: { removedAtMs: () => removedAtMs },
    migrationTarget: { check: async () => void calls.push('check here') },
  } as unknown as ClusterJobsDependencies;
  const layer = clusterJobs(dependencies)(own as never);
  return { calls, jobs: layer as Required<typeof layer> };
}

const startup = parseOpcode({ opcode: 'INSTANCE_STARTUP', name: 'web1' });
const remove = parseOpcode({ opcode: 'INSTANCE_REMOVE', name: 'web1' });
const adopt = parseOpcode({ opcode: 'INSTANCE_ADOPT', name: 'web1' });
const cluster = parseOpcode({ opcode: 'CLUSTER_SET_PARAMS' });
const orphanOn = (node: string, uuid = 'u1') => ({ uuid, name: 'web1', node });

for (const [text, opcode, scene, calls] of [
  ['of an instance of this node', startup, { instanceOn: OWN }, ['own INSTANCE_STARTUP']],
  ['of an instance of another node', startup, { instanceOn: OTHER }, [`ask ${OTHER}`]],
  ['of a missing instance', startup, {}, ['own INSTANCE_STARTUP']],
  ['of a removed node', startup, { instanceOn: OTHER, removedAtMs: 1 }, ['own INSTANCE_STARTUP']],
  ['that names no instance', cluster, { instanceOn: OTHER }, ['own CLUSTER_SET_PARAMS']],
  ['on an orphan elsewhere', remove, { orphans: [orphanOn(OTHER)] }, [`ask ${OTHER}`]],
  [
    'on an orphan here and elsewhere',
    remove,
    { orphans: [orphanOn(OTHER, 'u2'), orphanOn(OWN)] },
    ['own INSTANCE_REMOVE'],
  ],
  [
    'on no orphan',
    remove,
    { orphans: [{ ...orphanOn(OTHER), name: 'web2' }] },
    ['own INSTANCE_REMOVE'],
  ],
  [
    'to adopt an orphan with the name of an instance',
    adopt,
    { instanceOn: OWN, orphans: [orphanOn(OTHER)] },
    [`ask ${OTHER}`],
  ],
  ['to adopt no orphan', adopt, { instanceOn: OTHER }, ['own INSTANCE_ADOPT']],
  ['to create an instance on this node', createOpcode({ node: OWN }), {}, ['own INSTANCE_CREATE']],
  ['to create an instance elsewhere', createOpcode({ node: OTHER }), {}, [`ask ${OTHER}`]],
  [
    'to create an instance from a removed node',
    createOpcode({}),
    { removedAtMs: 1 },
    ['own INSTANCE_CREATE'],
  ],
  [
    'to move an instance to a given node',
    parseOpcode({ opcode: 'INSTANCE_MOVE', name: 'web1', node: OTHER }),
    { instanceOn: OWN },
    ['own INSTANCE_MOVE'],
  ],
  [
    'to clean up a migration',
    parseOpcode({ opcode: 'INSTANCE_MIGRATE', name: 'web1', cleanup: true }),
    { instanceOn: OWN },
    ['own INSTANCE_MIGRATE'],
  ],
  [
    'to fail over to this node, which checks first',
    parseOpcode({ opcode: 'INSTANCE_FAILOVER', name: 'web1', node: OWN }),
    { instanceOn: OTHER },
    ['check here', 'own INSTANCE_FAILOVER'],
  ],
  [
    'to fail over to another node, which checks first',
    parseOpcode({ opcode: 'INSTANCE_FAILOVER', name: 'web1', node: OTHER }),
    { instanceOn: OTHER },
    [`ask ${OTHER}`],
  ],
] as const)
  test(`a job ${text} runs where it belongs`, async () => {
    const submitted = create(scene);
    const tried = create(scene);
    const isAsked = calls[0].startsWith('ask');
    const settled = await Promise.allSettled([
      submitted.jobs.submit(opcode),
      tried.jobs.dryRun(opcode, new AbortController().signal),
    ]);
    assert.deepEqual(submitted.calls, calls);
    assert.deepEqual(
      tried.calls,
      calls.map((call) => call.replace('own ', 'own try ')),
    );
    assert.deepEqual(
      settled.map(({ status }) => status),
      isAsked ? ['rejected', 'rejected'] : ['fulfilled', 'fulfilled'],
    );
  });

test('an unknown node is refused by name', async () => {
  const nowhere = 'node9.example.com';
  for (const opcode of [
    createOpcode({ node: nowhere }),
    parseOpcode({ opcode: 'INSTANCE_FAILOVER', name: 'web1', node: nowhere }),
  ]) {
    const { jobs, calls } = create({ instanceOn: OTHER });
    await assert.rejects(async () => jobs.submit(opcode), {
      code: 'NODE_NOT_FOUND',
      message: /node9/,
    });
    assert.deepEqual(calls, []);
  }
});

test('a running job of another node is asked there, an ended one is in the store', async () => {
  const { signal } = new AbortController();
  const asked = async (job: Partial<JobRecord>): Promise<readonly string[]> => {
    const { jobs, calls } = create({ job });
    await jobs.cancel(3).catch(() => undefined);
    await Array.fromAsync(jobs.watch(3, signal)).catch(() => undefined);
    return calls;
  };
  const here = ['own cancel 3', 'own watch 3'];
  assert.deepEqual(await asked({ node: OWN }), here);
  assert.deepEqual(await asked({ node: OTHER, endedAtMs: 1 }), here);
  assert.deepEqual(await asked({ node: OTHER }), [`ask ${OTHER}`, `ask ${OTHER}`]);
});

test('the stored job is shown while its node does not answer', async () => {
  for (const refusal of ['NODE_UNREACHABLE', 'NODE_OFFLINE'] as const) {
    const { jobs } = create({ job: { node: OTHER }, refusal });
    assert.equal((await jobs.get(3)).id, 3);
  }
  const { jobs } = create({ job: { node: OTHER }, refusal: 'NODE_NOT_FOUND' });
  await assert.rejects(async () => jobs.get(3), { code: 'NODE_NOT_FOUND' });
  const here = create({ job: { node: OWN } });
  assert.equal((await here.jobs.get(4)).id, 4);
  assert.deepEqual(here.calls, []);
});
