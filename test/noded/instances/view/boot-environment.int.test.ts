import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { planMediumMachine } from '../../../../noded/provision/appliance/appliance-machine.ts';
import {
  bootEnvOfRun,
  installingBootEnv,
  refuseUnbootableEnv,
} from '../../../../noded/instances/view/boot-environment.ts';
import { noSecrets } from '../../../../noded/instances/parameters/job-secrets.ts';
import { hasMedium } from '../../../../noded/instances/machines/plan-boot.ts';
import { createClusterRepository } from '../../../../noded/records/cluster-repository.ts';
import { createLabBootViews } from '../../support/lab-boot-views.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { instanceRecord } from '../../support/records.ts';

test('a BootEnv that installs is for installations, local for nobody, any other for normal runs', () => {
  const chosen = (bootEnv: string | null) => [
    installingBootEnv({ bootEnv }),
    bootEnvOfRun({ bootEnv }),
  ];
  assert.deepEqual(chosen('debian-install'), ['debian-install', null]);
  assert.deepEqual(chosen('rescue'), [null, 'rescue']);
  assert.deepEqual(chosen('local'), [null, null]);
  assert.deepEqual(chosen(null), [null, null]);
  assert.ok(hasMedium(instanceRecord({ bootEnv: 'debian-install' })));
  assert.ok(!hasMedium(instanceRecord({ bootEnv: 'rescue' })));
});

test('normal runs whose channel is off, or behind tokens, cannot boot through it', () => {
  const refusal = (input: Parameters<typeof instanceRecord>[0]): string => {
    try {
      refuseUnbootableEnv(instanceRecord(input));
      return '';
    } catch (error) {
      assert.ok(isAppError(error, 'VALIDATION'));
      return `${error.message}; ${error.hint}`;
    }
  };
  assert.match(refusal({ bootEnv: 'rescue' }), /channel, which is off.*--communication yes/);
  assert.equal(refusal({ bootEnv: 'rescue', communication: true }), '');
  assert.equal(refusal({ bootEnv: 'local' }), '');
  assert.equal(refusal({ bootEnv: 'debian-install' }), '');
  const kernel = { hvparams: { kernel_path: '/vmlinuz' }, communication: true };
  assert.match(refusal({ bootEnv: 'rescue', ...kernel }), /kernel_path/);
  const dialects: ('ec2' | 'ganeti')[] = ['ec2'];
  assert.match(refusal({ bootEnv: 'rescue', communication: true, dialects }), /ganeti dialect/);
  const token = { communication: true, metadataToken: 'required' } as const;
  assert.match(
    refusal({ bootEnv: 'rescue', ...token }),
    /session token.*--metadata-token optional/,
  );
  assert.equal(refusal({ bootEnv: 'debian-install', ...token }), '');
  const installParameters = { cdrom_image_path: '/a.iso' };
  assert.match(refusal({ bootEnv: 'debian-install', installParameters }), /another .*medium/);
});

test('a machine that is installed by its channel boots from it first, then from its disk', () => {
  const boot = (bootEnv: string) =>
    planMediumMachine({
      instance: instanceRecord({ bootEnv }),
      accelerator: 'tcg',
      nics: [],
      diskPath: () => '/disk',
      variablesPath: '/v',
      cdromPath: undefined,
    }).bootOrder;
  assert.deepEqual(boot('debian-install'), ['channel', 'disk']);
  assert.deepEqual(boot('local'), ['disk']);
});

test('a BootEnv that nobody made is refused with the nearest name, and costs a run nothing', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-boot-views-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.ensure();
  const bootViews = createLabBootViews(clusters);
  const { signal } = new AbortController();
  const instance = instanceRecord({ bootEnv: 'lcoal', communication: true });
  await assert.rejects(bootViews.check(instance, noSecrets, signal), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_NOT_FOUND'));
    assert.equal(error.hint, 'Did you mean local?');
    return true;
  });
  assert.equal(await bootViews.forRun(instance, noSecrets), 'kept');
  await assert.rejects(bootViews.forStart(instance, noSecrets), { code: 'BOOTENV_NOT_FOUND' });
  await assert.rejects(
    bootViews.forInstall(instanceRecord({ bootEnv: 'gone-install' }), noSecrets),
    { code: 'BOOTENV_NOT_FOUND' },
  );
});
