import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { armTrap } from '../chaos/kill-at-call.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { installingView } from './support/view-fixture.ts';

/** Acknowledged reports survive a kill of metad at any of its system calls. */
const view = installingView();
/** System calls by which metad sends anything. */
const CALLS = ['write', 'writev'];
/** No report takes more calls of one kind. */
const MAX_CALLS = 20;

let lab: ChannelLab;
let guest: Guest;
before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

/** Reads metad's events as bytes, which survive a kill of metad in the socket. */
async function openReader(): Promise<{ readonly socket: Socket; readonly text: () => string }> {
  const socket = connect(lab.controlSocket);
  socket.on('error', () => undefined);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.write('GET /v1/events?after=0 HTTP/1.1\r\nHost: metad\r\n\r\n');
  while (!text.includes('\r\n\r\n')) await once(socket, 'data');
  return { socket, text: () => text };
}

/** @returns the number of kill points */
async function killAtEach(path: string, body: (mark: string) => string): Promise<number> {
  let points = 0;
  for (const call of CALLS) {
    for (let when = 1; when < MAX_CALLS; when += 1) {
      assert.equal((await lab.put(view)).status, 204);
      const reader = await openReader();
      const trap = await armTrap(lab.metadPid, { thread: 'loop', call, when });
      const mark = `mark-${call}-${when}`;
      const options = { method: 'POST', body: body(mark) };
      const status = await askFromGuest(guest.namespace, `/ganeti/latest/${path}`, options).then(
        (answer) => answer.status,
        () => 0,
      );
      await trap.disarm();
      const isHurt = !existsSync(`/proc/${lab.metadPid}/exe`);
      if (!isHurt) {
        reader.socket.destroy();
        break;
      }
      if (!reader.socket.closed) await new Promise((closed) => reader.socket.once('close', closed));
      if (status === 204)
        assert.ok(reader.text().includes(mark), `${path}, ${call} ${when}: acknowledged, and lost`);
      await lab.startMetad();
      points += 1;
    }
  }
  return points;
}

test('an acknowledged report is not lost when metad is killed at any system call', async () => {
  const stage = (mark: string): string =>
    JSON.stringify([{ type: 'stage-finished', atMs: 5, stage: 'image', summary: mark }]);
  assert.ok((await killAtEach('install/events', stage)) >= 2);
  assert.ok((await killAtEach('ready', (mark) => mark)) >= 2);
});

test('reports are accepted while a reader pauses, and the reader gets them later', async (t) => {
  assert.equal((await lab.put(view)).status, 204);
  const reader = await openReader();
  t.after(() => reader.socket.destroy());
  reader.socket.pause();
  // More than the sockets between the two buffer.
  const line = { type: 'log', atMs: 5, stage: 'image', stream: 'stdout', line: 'x'.repeat(4000) };
  const batch = JSON.stringify(Array.from({ length: 30 }, () => line));
  const post = async (): Promise<number> =>
    (await askFromGuest(guest.namespace, '/ganeti/latest/install/events', { method: 'POST', body: batch })).status; // prettier-ignore
  for (let count = 0; count < 5; count += 1) assert.equal(await post(), 204);
  reader.socket.resume();
  const isAll = (): boolean => reader.text().split('"type":"log"').length > 150;
  while (!isAll()) await once(reader.socket, 'data');
});
