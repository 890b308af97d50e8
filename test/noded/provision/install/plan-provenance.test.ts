import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type InstalledContent,
  planProvenance,
} from '../../../../noded/provision/install/plan-provenance.ts';

const CONTENT: InstalledContent = {
  isImport: false,
  image: { checksum: 'sha256:01', key: 'openpgp:02' },
  osDigests: ['sha256:03', 'sha256:03'],
  appliances: new Set(['sha256:04']),
};

test('an unchanged definition and a single appliance are part of the provenance', () => {
  assert.deepEqual(planProvenance(CONTENT), {
    ...{ imageChecksum: 'sha256:01', imageKey: 'openpgp:02' },
    ...{ osDigest: 'sha256:03', applianceDigest: 'sha256:04' },
  });
});

test('an import has no provenance', () => {
  assert.equal(planProvenance({ ...CONTENT, isImport: true }), undefined);
});

test('a definition that changed meanwhile and two appliances are left out', () => {
  const appliances = new Set(['sha256:04', 'sha256:05']);
  const none = { imageChecksum: null, imageKey: null, osDigest: null, applianceDigest: null };
  for (const osDigests of [
    ['sha256:03', 'sha256:06'],
    ['sha256:03', null],
    [null, 'sha256:03'],
  ] as const)
    assert.deepEqual(planProvenance({ isImport: false, image: null, osDigests, appliances }), none);
});
