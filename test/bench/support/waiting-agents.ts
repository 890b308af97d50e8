import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { lifecycleOf, scriptOf } from '../../metad/support/lifecycle-fixture.ts';
import { KeepAliveClient } from './keep-alive-client.ts';
import { median, percentile } from './measurement.ts';
import type { Report } from './measurement.ts';
import { loopbackAddress, MetadHost, viewOf } from './metad-host-process.ts';

const AGENTS = 10_000;
const PORT = 18_200;
const PUTS_AT_ONCE = 8;
const AT_ONCE = 200;
const ROUNDS = 9;
const REQUESTS = 3000;
const START = 'HTTP/1.1\r\nHost: 169.254.169.254\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n';
const ASK = `GET /ganeti/latest/lifecycle.json ${START}`;
const NEIGHBOUR = `GET /ganeti/latest/meta_data.json ${START}`;
const lifecycle = lifecycleOf({
  lists: { boot: [scriptOf('01-all', 'true')], operational: [], decommission: [] },
  state: 'operational',
});

/** Measures metad's cost of agents that wait for a command, and their effect on a neighbour. */
export async function measureWaitingAgents(report: Report): Promise<void> {
  await using host = await MetadHost.start(PORT);
  let next = 0;
  const putSome = async (): Promise<void> => {
    // One instance more than agents, for the neighbour.
    while (next <= AGENTS) await host.put({ ...viewOf(next++), lifecycle });
  };
  await Promise.all(Array.from({ length: PUTS_AT_ONCE }, putSome));
  // As all agents do before they wait.
  const etags = await ofEach(ask);
  const before = { p99: await neighbourP99(), bytes: await host.heldBytes() };
  const agents = await ofEach((index) => wait(index, etags[index] ?? ''));
  try {
    // An early answer to an agent would arrive before these.
    const p99 = await neighbourP99();
    report({
      name: `memory of each of ${AGENTS} waiting agents, its connection included`,
      value: ((await host.heldBytes()) - before.bytes) / AGENTS / 1024,
      ...{ unit: 'KiB', compared_with: null },
    });
    report({
      ...{ name: `a neighbour’s p99 beside ${AGENTS} waiting agents`, value: p99, unit: 'ms' },
      compared_with: { name: 'beside none', value: before.p99 },
    });
    const answered = agents.filter((socket) => socket.readableLength > 0).length;
    if (answered > 0) throw new Error(`${answered} agents were not kept waiting`);
  } finally {
    for (const socket of agents) socket.destroy();
  }
}

/** Runs `act` for all agents, some at a time. */
async function ofEach<T>(act: (index: number) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  while (results.length < AGENTS) {
    const some = Array.from({ length: AT_ONCE }, (_, at) => act(results.length + at));
    results.push(...(await Promise.all(some)));
  }
  return results;
}

/** @returns the ETag that an agent waits with */
async function ask(index: number): Promise<string> {
  const socket = connect({ host: loopbackAddress(index), port: PORT });
  socket.write(ASK);
  // The type follows Node's documentation of the event.
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  const etag = /^etag: (.*)\r$/im.exec(chunk.toString())?.[1] ?? '';
  if (etag === '') throw new Error(`no ETag: ${chunk.toString().slice(0, 200)}`);
  return etag;
}

async function wait(index: number, etag: string): Promise<Socket> {
  const socket = connect({ host: loopbackAddress(index), port: PORT });
  await once(socket, 'connect');
  const query = `wait_for_change=true&timeout_sec=3600&last_etag=${encodeURIComponent(etag)}`;
  socket.write(ASK.replace(' HTTP', `?${query} HTTP`));
  return socket;
}

async function neighbourP99(): Promise<number> {
  await using client = await KeepAliveClient.open([loopbackAddress(AGENTS)], PORT, NEIGHBOUR);
  await client.run(REQUESTS);
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push(percentile(await client.run(REQUESTS), 0.99));
  return median(rounds);
}
