import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planMirrorVariables } from '../../../../appliance/agent/scripts/environment.ts';
import { installingView } from '../../../metad/support/view-fixture.ts';

test('a package mirror reaches scripts as GNT_MIRROR_NAME', () => {
  const plan = installingView().install?.plan;
  assert.ok(plan);
  assert.deepEqual(planMirrorVariables(plan), {});
  assert.deepEqual(planMirrorVariables({ ...plan, mirrors: ['debian-security'] }), {
    GNT_MIRROR_DEBIAN_SECURITY: 'http://169.254.169.254/ganeti/latest/mirror/debian-security',
  });
});
