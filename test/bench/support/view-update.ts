import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from './measurement.ts';
import type { Report } from './measurement.ts';
import { MetadHost, loopbackAddress, viewOf } from './metad-host-process.ts';

const PORT = 18_100;
const UPDATES = 500;
/** The first updates run unoptimized code. */
const WARM_UP_UPDATES = 100;
/** Time for the guest's request to arrive. A later request would be answered at once. */
const SETTLE_MS = 5;

/**
 * Measures the time from the node daemon's request with a new view to the answer for a guest in
 * `wait_for_change`.
 */
export async function measureViewUpdate(report: Report): Promise<void> {
  await using host = await MetadHost.start(PORT);
  const view = viewOf(0);
  await host.put(view);
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  try {
    let etag = (await ask(agent, '')).headers.etag ?? '';
    for (let revision = 2; revision < UPDATES + 2; revision++) {
      const waiting = ask(agent, `?wait_for_change=true&last_etag=${encodeURIComponent(etag)}`);
      await sleep(SETTLE_MS);
      const startedAt = performance.now();
      const [answer] = await Promise.all([
        waiting.then((incoming) => {
          times.push(performance.now() - startedAt);
          return incoming;
        }),
        host.put({ ...view, revision, metadata: { revision: String(revision) } }),
      ]);
      etag = answer.headers.etag ?? '';
    }
  } finally {
    agent.destroy();
  }
  for (const [name, part] of [
    ['p50', 0.5],
    ['p99', 0.99],
  ] as const) {
    report({
      name: `new view pushed to answer of a waiting guest, ${name}`,
      value: percentile(times.slice(WARM_UP_UPDATES), part),
      unit: 'ms',
      compared_with: null,
    });
  }
}

async function ask(agent: Agent, query: string): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        host: loopbackAddress(0),
        port: PORT,
        path: `/ganeti/latest/meta_data.json${query}`,
        headers: { host: '169.254.169.254' },
      },
      (incoming) => {
        incoming.resume();
        incoming.on('end', () => resolve(incoming));
        incoming.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}
