import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { requestOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';

/** Answers each connection once, by its number, and closes it a moment later. */
const SERVER = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
let connections = 0;
createServer((socket) => {
  const text = String((connections += 1));
  socket.on('error', () => undefined);
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: ' + text.length + '\\r\\n\\r\\n' + text);
    setTimeout(() => socket.destroy(), 20);
  });
}).listen(workerData, () => parentPort.postMessage('listens'));
`;
const BUSY_MS = 200;

test('a kept connection that was closed while we were busy fails nothing that may be asked twice', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-test-'));
  const path = join(folder, 'socket');
  const server = new Worker(SERVER, { eval: true, workerData: path });
  const agent = new Agent({ keepAlive: true });
  const ask = async (method: string): Promise<string> => {
    const answer = await requestOverSocket({ on: path, agent, method, path: '/' });
    return (await collect(answer, 100)).toString();
  };
  const askTwice = async (method: string): Promise<string> => {
    const isFree = once(agent, 'free');
    await ask(method);
    await isFree;
    // Stay busy, so that the closed connection is reused before its end is noticed.
    for (const until = performance.now() + BUSY_MS; performance.now() < until;);
    return ask(method);
  };
  try {
    await once(server, 'message');
    assert.equal(await askTwice('GET'), '2');
    assert.equal(await askTwice('PUT'), '4');
    await assert.rejects(askTwice('POST'), { code: /ECONNRESET|EPIPE/ });
  } finally {
    agent.destroy();
    await server.terminate();
    await rm(folder, { recursive: true });
  }
});
