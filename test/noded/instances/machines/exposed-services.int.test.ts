import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createClusterRepository } from '../../../../noded/records/cluster-repository.ts';
import { ExposedServices } from '../../../../noded/instances/machines/exposed-services.ts';

const destination = { host: '127.0.0.1', hostPort: 8080 };
const service = { port: 3142, ...destination };
const dns = { port: 53, ...destination, protocol: 'udp' } as const;
const instance = {
  name: 'web1',
  uuid: '6aa7b544-1f3d-49e9-b2b7-73836039b5cf',
  ip: '169.254.0.1',
};

test('the record decides which ports are open, when views are renewed, and where a connection leads', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-services-'));
  const store = createSqliteStore({ path: join(directory, 'store'), clock: systemClock });
  const clusters = createClusterRepository(store, systemClock);
  await clusters.ensure();
  const calls: unknown[] = [];
  let device: string | null = 'gnt.com.0';
  let isAway = false;
  const away = new AppError('STORE_UNAVAILABLE', 'the store does not answer');
  const services = new ExposedServices({
    clusters: {
      ...clusters,
      load: () => (isAway ? Promise.reject(away) : clusters.load()),
    },
    instances: {
      findByUuid: async () => ({ name: instance.name, channel: { ip: instance.ip } }),
    },
    network: { setServicePorts: async (ports) => void calls.push(ports) },
    keeper: {
      get: (uuid) => (uuid === instance.uuid ? { device } : undefined),
      republishAll: async () => void calls.push('views'),
    },
  });
  const expose = (exposeServices: Record<string, typeof service | typeof dns>): Promise<unknown> =>
    clusters.update((cluster) => ({ ...cluster, exposeServices }));

  await expose({ apt: service, dns });
  await services.publish();
  assert.deepEqual(calls, [{ tcp: [3142], udp: [53] }, 'views']);
  assert.deepEqual(await services.find(instance.uuid, 'apt'), {
    port: 3142,
    protocol: 'tcp',
    destination,
    instance,
  });
  assert.deepEqual(await services.find(instance.uuid, 'dns'), {
    port: 53,
    protocol: 'udp',
    destination,
    instance,
  });
  isAway = true;
  assert.deepEqual(await services.find(instance.uuid, 'apt'), {
    port: 3142,
    protocol: 'tcp',
    destination,
    instance,
  });
  await assert.rejects(services.refresh(), { code: 'STORE_UNAVAILABLE' });
  isAway = false;
  await services.refresh();
  assert.equal(calls.length, 2, 'nothing had changed');
  assert.equal(await services.find(instance.uuid, 'constructor'), undefined);
  assert.equal(await services.find('0f312383-0843-4d64-b900-bcda02f9f77b', 'apt'), undefined);
  device = null;
  assert.equal(await services.find(instance.uuid, 'apt'), undefined, 'its channel is off');
  device = 'gnt.com.0';
  await expose({});
  await services.refresh();
  assert.deepEqual(calls.slice(2), [{ tcp: [], udp: [53] }, 'views']);
  assert.equal(await services.find(instance.uuid, 'apt'), undefined);
  await store.close();
  await rm(directory, { recursive: true });
});
