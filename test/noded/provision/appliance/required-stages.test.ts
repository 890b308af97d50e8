import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { createLookStages } from '../../../../appliance/agent/stages/look-stages.ts';
import { createPlanStages } from '../../../../appliance/agent/stages/plan-stages.ts';
import { createHostClient } from '../../../../appliance/agent/channel/host-client.ts';
import { ScriptWorld } from '../../../../appliance/agent/scripts/script-world.ts';
import {
  findMissingStage,
  listRequiredStages,
} from '../../../../noded/provision/appliance/required-stages.ts';

const empty: InstallPlan = {
  version: 1,
  installId: '11111111-1111-1111-1111-111111111111',
  instance: 'test.example.com',
  disks: [],
  image: null,
  scripts: null,
  personalization: null,
};
const parts: Partial<InstallPlan>[] = [
  { image: { serial: 'image', fileSizeBytes: 1, grow: false } },
  { image: { serial: 'image', fileSizeBytes: 1, grow: true } },
  { scripts: { script: 'create', path: 'create', environment: {} } },
  { scripts: { script: 'create', path: 'create', environment: {}, verify: 'verify' } },
  { personalization: { format: 'tar.gz' } },
  { isLook: true },
];
const plans: InstallPlan[] = parts.reduce(
  (made, part) => [...made, ...made.map((plan) => ({ ...plan, ...part }))],
  [empty],
);

test('what noded asks for is what the agent does, for every plan', () => {
  for (const plan of plans) {
    const create = plan.isLook === true ? createLookStages : createPlanStages;
    const { stages, cleanup } = create({
      plan,
      host: createHostClient({ host: '127.0.0.1', port: 1 }),
      at: { sysBlock: '/nowhere', dev: '/nowhere' },
      parameters: async () => ({}),
      hooks: null,
      world: new ScriptWorld(),
      onDumped: () => undefined,
    });
    const done = [...stages, ...cleanup].map(({ name }) => name);
    const required = listRequiredStages(plan);
    assert.deepEqual(required, done);
    assert.equal(findMissingStage(required, done), null);
    for (const stage of done)
      assert.notEqual(
        findMissingStage(
          required,
          done.filter((other) => other !== stage),
        ),
        null,
      );
  }
});
