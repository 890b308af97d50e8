import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkArrival } from '../../../noded/operations/check-arrival.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

type Dependencies = Parameters<typeof checkArrival>[2];
const PACKAGE = '/nonexistent/package.tar';

/** Checks an arrival on a node where a part is missing; null: where all of them are there. */
function arrive(missing: string | null, changes: object = {}): Promise<void> {
  const look = (part: string) => (): Promise<unknown> =>
    part === missing ? Promise.reject(new Error(part)) : Promise.resolve({});
  const dependencies = {
    runner: { checkRunnable: look('runnable') },
    osRegistry: { find: look('OS') },
    images: { check: look('image') },
    applianceFiles: { verify: look('appliance') },
    clusters: {
      load: () => Promise.resolve(clusterRecord),
      loadOs: (name: string) => Promise.resolve({ name }),
    },
    bootViews: { check: look('boot environment') },
    disks: { checkSizes: look('room for its sizes') },
  } as unknown as Dependencies;
  const given = { osType: 'hello', osImage: 'image', personalizationPackage: null, ...changes };
  return checkArrival(instanceRecord({}, given), new AbortController().signal, dependencies);
}

test('a node refuses an instance of which it lacks a part, and names that part', async () => {
  await arrive(null);
  for (const part of ['runnable', 'OS', 'image', 'boot environment', 'room for its sizes'])
    await assert.rejects(arrive(part), { message: part });
  await assert.rejects(arrive(null, { personalizationPackage: PACKAGE }), {
    code: 'PACKAGE_SOURCE',
  });
  await arrive(null, { appliance: 'own' });
  await assert.rejects(arrive('appliance', { appliance: 'own' }), { message: 'appliance' });
});

test('an instance without an OS definition and an image needs neither', async () => {
  await arrive('OS', { osType: null });
  await arrive('image', { osImage: null });
});
