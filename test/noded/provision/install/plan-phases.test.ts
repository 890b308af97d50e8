import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hookPoint } from '#shared/contract/primitives.ts';
import { type InstallParts, planPhases } from '../../../../noded/provision/install/plan-phases.ts';

const nothing: InstallParts = {
  hasMedium: false,
  hasImage: false,
  isImageOnHost: false,
  hasPackage: false,
  applianceScript: null,
  hostScript: null,
  hasHooks: false,
  isReinstall: false,
};
const plan = (parts: Partial<InstallParts>) =>
  planPhases({ ...nothing, ...parts }).map((phase) =>
    phase.kind !== 'appliance'
      ? phase.kind === 'host-script'
        ? phase.script.path
        : phase.kind
      : {
          does: (['image', 'script', 'personalization', 'alongside'] as const).filter(
            (part) => phase[part] !== false && phase[part] !== null,
          ),
          hooks: phase.hooks,
        },
  );
const reset = ['before-reset', 'after-reset-chroot', 'after-reset'];
const usual = hookPoint.options.filter((point) => !reset.includes(point));
const early = ['install.pre', 'before-install', 'image'];
const late = ['after-install-chroot', 'personalize', 'after-install', 'install.post'];

test('one machine does it all, and has all stages; those of a reset in reinstallations only', () => {
  assert.deepEqual(plan({ hasImage: true, applianceScript: 'untrusted/create' }), [
    { does: ['image', 'script'], hooks: usual },
  ]);
  assert.deepEqual(plan({ hasPackage: true, isReinstall: true }), [
    { does: ['personalization'], hooks: hookPoint.options },
  ]);
});

test("around a script on the host the stages are divided, and each is some machine's", () => {
  assert.deepEqual(
    plan({ hasImage: true, hasPackage: true, hostScript: { path: '/create', digest: 'sha256:0' } }),
    [
      { does: ['image'], hooks: early },
      '/create',
      { does: ['personalization'], hooks: ['os-scripts', ...late] },
    ],
  );
  assert.deepEqual(
    plan({
      applianceScript: 'untrusted/create',
      hostScript: { path: '/create', digest: 'sha256:0' },
      hasPackage: true,
    }),
    [
      { does: ['script', 'alongside'], hooks: [...early, 'os-scripts'] },
      { does: ['personalization'], hooks: late },
    ],
  );
});

test('hooks alone need their machines, and without any there are none for them', () => {
  assert.deepEqual(plan({ hostScript: { path: '/create', digest: 'sha256:0' }, hasHooks: true }), [
    { does: [], hooks: early },
    '/create',
    { does: [], hooks: ['os-scripts', ...late] },
  ]);
  assert.deepEqual(plan({ hostScript: { path: '/create', digest: 'sha256:0' } }), ['/create']);
});

test('what is to be laid over what a medium installed comes after it, and nothing does where there is nothing', () => {
  assert.deepEqual(plan({ hasMedium: true }), ['medium']);
  assert.deepEqual(
    plan({ hasMedium: true, hasPackage: true, applianceScript: 'untrusted/create' }),
    ['medium', { does: ['script', 'personalization'], hooks: usual }],
  );
  const hostScript = { path: '/create', digest: 'sha256:0' };
  assert.deepEqual(plan({ hasMedium: true, hostScript }), ['medium', '/create']);
  assert.deepEqual(plan({ hasMedium: true, hasHooks: true }), [
    'medium',
    { does: [], hooks: usual },
  ]);
});

test('an image that this host writes needs no machine; what else does, has one', () => {
  const hostScript = { path: '/create', digest: 'sha256:0' };
  const image = { hasImage: true, isImageOnHost: true };
  assert.deepEqual(plan(image), ['host-image']);
  assert.deepEqual(plan({ ...image, hostScript }), ['host-image', '/create']);
  assert.deepEqual(plan({ ...image, hostScript, hasPackage: true }), [
    'host-image',
    '/create',
    { does: ['personalization'], hooks: ['os-scripts', ...late] },
  ]);
});
