import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { createAudit } from '../../../metad/http/audit.ts';
import { GuestHandler } from '../../../metad/http/guest-handler.ts';
import type { GuestMetrics } from '../../../metad/http/guest-metrics.ts';
import { GuestServer } from '../../../metad/http/guest-server.ts';
import { sendText } from '../../../metad/http/reply.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { EXPECTED_STATUSES, fuzzConnection } from '../support/fuzz-client.ts';
import { createSeededRandom } from '../../lab/seeded-random.ts';
import { testSeed } from '../../lab/test-seed.ts';
import { exampleView } from '../support/view-fixture.ts';

const REQUESTS = 100_000;
/**
 * Few enough that all are answered within that time on a slow machine: whoever gives up asks for
 * nothing but more of it.
 */
const CONNECTIONS_AT_ONCE = 25;
const MAX_GROWTH_BYTES = 50 * 1024 * 1024;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('100,000 generated requests neither break the service, nor let it grow, nor get an unknown answer', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-fuzz-'));
  const path = join(directory, 'socket');
  const statuses = new Map<number, number>();
  let failures = 0;
  const metrics: GuestMetrics = { finished: () => undefined, refused: () => undefined };
  const logger = { ...silentLogger, error: () => failures++ };
  const handler = new GuestHandler({
    events: new EventLog(0),
    serveStream: ({ response }) => sendText(response, 502, 'none'),
    metrics,
    audit: createAudit(logger, systemClock),
    clock: systemClock,
  });
  const limits = { requestsPerSecond: 1e6, burst: 1e6, connections: 1000 };
  const instance = new Instance(parseView(exampleView({ limits })), systemClock);
  using guests = new GuestServer(handler, metrics);
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    guests.accept(instance, socket, true),
  );
  server.listen({ path, backlog: 1024 });
  await once(server, 'listening');

  const random = createSeededRandom(testSeed(t)).below;
  let answered = 0;
  const before = heldBytes();
  const client = async (): Promise<void> => {
    while (answered < REQUESTS) {
      for (const status of await fuzzConnection(connect(path), random)) {
        answered++;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      // Reading the queues keeps them from filling up and answering 429 from then on.
      instance.toHost.take();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_AT_ONCE }, client));
  server.close();
  await rm(directory, { recursive: true });

  assert.equal(failures, 0, 'the handler failed');
  for (const status of statuses.keys())
    assert.ok(EXPECTED_STATUSES.has(status), `status ${status}`);
  assert.ok(
    (statuses.get(200) ?? 0) > 20_000,
    'too few requests were right for the test to mean anything',
  );
  while (instance.sockets.size > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const growth = heldBytes() - before;
  assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes more are held`);
});

/**
 * What is still in use; what the process has taken from the system besides is the collector's
 * affair.
 */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
