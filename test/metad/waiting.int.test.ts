import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { InstanceView } from '#shared/contract/view.ts';
import { run } from '#shared/process/run.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const PATH = '/latest/meta-data/tags/instance/role';
let lab: ChannelLab;
let guest: Guest;
let view: InstanceView = exampleView();

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
  await lab.put(view);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function change(overrides: Partial<InstanceView>): Promise<void> {
  view = { ...view, revision: view.revision + 1, ...overrides };
  assert.equal((await lab.put(view)).status, 204);
}

async function ask(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return await askFromGuest(guest.namespace, path, { headers });
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 200));
}

test('a matching ETag gets 304 without a body, and another ETag gets 200', async () => {
  const first = await ask(PATH);
  const etag = first.headers.etag ?? '';
  const same = await ask(PATH, { 'if-none-match': etag });
  assert.equal(same.status, 304);
  assert.equal(same.body.length, 0);
  assert.equal(same.headers.etag, etag);
  assert.equal((await ask(PATH, { 'if-none-match': '"other"' })).status, 200);
});

test('a waiting reader is answered by a change of its path, and not by another change', async () => {
  const etag = (await ask(PATH)).headers.etag ?? '';
  const waiting = ask(
    `${PATH}?wait_for_change=true&last_etag=${encodeURIComponent(etag)}&timeout_sec=30`,
  );
  let isAnswered = false;
  void waiting.then(() => (isAnswered = true));
  await pause();
  await change({ tags: ['changed'] });
  await pause();
  assert.equal(isAnswered, false);
  await change({ metadata: { role: 'backend' } });
  const answer = await waiting;
  assert.equal(answer.body.toString(), 'backend');
  assert.notEqual(answer.headers.etag, etag);
});

test('a waiting connection is probed by keepalive within 30 seconds', async () => {
  const etag = encodeURIComponent((await ask(PATH)).headers.etag ?? '');
  const waiting = ask(`${PATH}?wait_for_change=true&last_etag=${etag}&timeout_sec=300`);
  const look = ['netns', 'exec', lab.namespace, 'ss', '-Htno', 'state', 'established', 'sport', '= :80']; // prettier-ignore
  let timers: readonly string[] = [];
  while (timers.length === 0) {
    const { stdout } = await run('ip', look);
    timers = [...stdout.matchAll(/timer:\(keepalive,(\d+)sec/g)].map(([, seconds = '']) => seconds);
    if (/min|hour/.test(stdout)) assert.fail(stdout);
  }
  for (const seconds of timers) assert.ok(Number(seconds) <= 30, seconds);
  await change({ metadata: { role: 'asked' } });
  assert.equal((await waiting).body.toString(), 'asked');
  await change({ metadata: { role: 'backend' } });
});

test('an outdated ETag is answered at once, quoted or not', async () => {
  for (const etag of ['NONE', '%22x%22', 'W/%22x%22']) {
    const answer = await ask(`${PATH}?wait_for_change=true&last_etag=${etag}`);
    assert.equal(answer.body.toString(), 'backend');
  }
  const bare = ((await ask(PATH)).headers.etag ?? '').replaceAll('"', '');
  const startedAt = performance.now();
  await ask(`${PATH}?wait_for_change=true&last_etag=${bare}&timeout_sec=1`);
  assert.ok(performance.now() - startedAt > 900);
});

test('a waiting reader gets the current content at its timeout', async () => {
  const answer = await ask(`${PATH}?wait_for_change=true&timeout_sec=1`);
  assert.equal(answer.status, 200);
  assert.equal(answer.body.toString(), 'backend');
});

test('folders, other dialects and HEAD wait as well', async () => {
  const folder = ask('/latest/meta-data/tags/instance/?wait_for_change=true&timeout_sec=30');
  const document = ask('/ganeti/latest/meta_data.json?wait_for_change=true&timeout_sec=30');
  const head = askFromGuest(
    guest.namespace,
    '/nocloud/user-data?wait_for_change=true&timeout_sec=30',
    {
      method: 'HEAD',
    },
  );
  await pause();
  await change({
    metadata: { role: 'backend', colour: 'blue' },
    userData: Buffer.from('#!/bin/sh\n').toString('base64'),
  });
  assert.equal((await folder).body.toString(), 'colour\nrole');
  assert.match((await document).body.toString(), /blue/);
  assert.equal((await head).headers['content-length'], '10');
});

test('a path that disappears while a reader waits ends in 404', async () => {
  const waiting = ask(`${PATH}?wait_for_change=true&timeout_sec=30`);
  await pause();
  await change({ metadata: {} });
  assert.equal((await waiting).status, 404);
});

test('a change is visible at once, and a refused view changes nothing', async () => {
  await change({ metadata: { role: 'a' } });
  assert.equal((await ask(PATH)).body.toString(), 'a');
  const bad = { ...view, revision: view.revision + 1, metadata: { role: 5 } };
  const answer = await lab.control('PUT', `/v1/instances/${view.uuid}`, JSON.stringify(bad));
  assert.equal(answer.status, 400);
  assert.equal((JSON.parse(answer.body.toString()) as { code: string }).code, 'VALIDATION');
  assert.match(answer.body.toString(), /metadata\.role/);
  assert.equal((await ask(PATH)).body.toString(), 'a');
});

test('invalid timeouts are refused', async () => {
  assert.equal((await ask(`${PATH}?wait_for_change=true&timeout_sec=soon`)).status, 400);
});
