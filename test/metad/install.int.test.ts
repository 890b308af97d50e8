import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { after, before, test } from 'node:test';
import type { InstanceView } from '#shared/contract/view.ts';
import { signEvent, signPath } from '#shared/secret/event-signature.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Answer, Guest } from './support/channel-lab.ts';
import { eventsAfter } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import type { GuestRequest } from './support/guest-http.ts';
import { exampleView, installingView } from './support/view-fixture.ts';

const view = installingView();
const IMAGE = Buffer.from(Array.from({ length: 100_000 }, (_value, index) => index % 251));
let lab: ChannelLab;
let guest: Guest;
let content: Server;
let isPackageBroken = false;

before(async () => {
  lab = await ChannelLab.create();
  content = createServer((request, response) => {
    assert.match(request.url ?? '', new RegExp(`^/v1/instances/${view.uuid}/(image|package)$`));
    if (request.url?.endsWith('package')) {
      if (isPackageBroken) {
        response.writeHead(500, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ code: 'PACKAGE_DOWNLOAD', message: 'the URL answered 404' }));
      } else {
        response.end('package bytes');
      }
      return;
    }
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (!range) {
      response.writeHead(200, { 'content-length': IMAGE.length, etag: '"image-1"' });
      response.end(IMAGE);
      return;
    }
    const part = IMAGE.subarray(Number(range[1]), Number(range[2]) + 1);
    response.writeHead(206, {
      'content-length': part.length,
      'content-range': `bytes ${range[1]}-${range[2]}/${IMAGE.length}`,
    });
    response.end(part);
  });
  await new Promise<void>((resolve) => content.listen(lab.contentSocket, () => resolve()));
  await chmod(lab.contentSocket, 0o666);
  guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
});
after(async () => {
  content.close();
  content.closeAllConnections();
  await lab[Symbol.asyncDispose]();
});

async function ask(path: string, options: GuestRequest = {}): Promise<Answer> {
  return await askFromGuest(guest.namespace, `/ganeti/latest/${path}`, options);
}

test('the appliance reads its plan, the scripts and the definition', async () => {
  assert.deepEqual(
    JSON.parse((await ask('install/plan.json')).body.toString()),
    view.install?.plan,
  );
  assert.equal((await ask('os/scripts/create')).body.toString(), '#!/bin/sh\nexit 0\n');
  assert.equal((await ask('os/scripts/none')).status, 404);
  assert.equal((await ask('os/definition.tar')).body.length, 1024);
});

const KEY = 'ab'.repeat(32);
const OTHER_KEY = 'cd'.repeat(32);
const askHooks = (proof?: string): Promise<Answer> =>
  ask('install/hooks.json', proof === undefined ? {} : { headers: { 'x-gnt-agent-proof': proof } });

async function introduce(key: string, signedWith = key): Promise<void> {
  const body = JSON.stringify({
    ...{ type: 'agent-started', atMs: 1, userSpaceAtMs: null },
    ...{ agentVersion: '1', key },
  });
  const batch = [{ sequence: 1, body, mac: signEvent(signedWith, 1, body) }];
  const posted = await ask('install/events', { method: 'POST', body: JSON.stringify(batch) });
  assert.equal(posted.status, 204);
}

test('hooks are served only with a proof of the agent’s key, and a second key is refused', async () => {
  const proof = signPath(KEY, 'install/hooks.json');
  assert.equal((await askHooks(proof)).status, 403);
  await introduce(KEY, OTHER_KEY);
  assert.equal((await askHooks(proof)).status, 403);
  await introduce(KEY);
  await introduce(OTHER_KEY);
  const refused = [undefined, '', 'x', proof.slice(2), signPath(OTHER_KEY, 'install/hooks.json')];
  const others = [signPath(KEY, 'install/plan.json'), signEvent(KEY, 1, 'install/hooks.json')];
  for (const given of [...refused, ...others]) {
    const answer = await askHooks(given);
    assert.equal(answer.status, 403);
    assert.match(answer.body.toString(), /only the agent/);
  }
  for (const path of [
    'install/hooks.json?wait_for_change=true&timeout_sec=0',
    'install//hooks.json',
  ])
    assert.notEqual((await ask(path)).status, 200, path);
  const hooks = await askHooks(proof);
  assert.deepEqual(JSON.parse(hooks.body.toString()), view.install?.hooks);
  assert.equal(hooks.headers['cache-control'], 'no-store');
});

test('the agent key of the view replaces an introduced key, and another installation needs its own', async () => {
  const install = view.install;
  assert.ok(install);
  const plan = { ...install.plan, installId: '0f312383-0843-4d64-b900-bcda02f9f77c' };
  const proof = signPath(KEY, 'install/hooks.json');
  const show = async (shown: InstanceView['install']): Promise<void> => {
    const answer = await lab.put({ ...view, install: shown });
    assert.equal(answer.status, 204);
  };
  await show({ ...install, plan });
  assert.equal((await askHooks(proof)).status, 403);
  await show({ ...install, plan, agentKey: KEY });
  await introduce(OTHER_KEY);
  assert.equal((await askHooks(signPath(OTHER_KEY, 'install/hooks.json'))).status, 403);
  assert.equal((await askHooks(proof)).status, 200);
  await show({ ...install, plan });
  assert.equal((await askHooks(proof)).status, 403);
  await show(install);
});

test('the image is streamed whole and in ranges, with its validators', async () => {
  const whole = await ask('os/image');
  assert.equal(whole.status, 200);
  assert.ok(whole.body.equals(IMAGE));
  assert.equal(whole.headers.etag, '"image-1"');
  const part = await ask('os/image', { headers: { range: 'bytes=10-19' } });
  assert.equal(part.status, 206);
  assert.equal(part.headers['content-range'], 'bytes 10-19/100000');
  assert.deepEqual(part.body, IMAGE.subarray(10, 20));
});

test('the package has two paths, and a failure of the node is passed on with its message', async () => {
  assert.equal((await ask('os/package')).body.toString(), 'package bytes');
  assert.equal((await ask('os/os-install-package')).body.toString(), 'package bytes');
  isPackageBroken = true;
  const answer = await ask('os/package');
  assert.equal(answer.status, 502);
  assert.match(answer.body.toString(), /the URL answered 404/);
});

test('reports are forwarded with the installation they belong to', async () => {
  const batch = [
    { type: 'stage-started', atMs: 5, stage: 'image' },
    { type: 'result', atMs: 9, outcome: { status: 'success' } },
  ];
  const answer = await ask('install/events', { method: 'POST', body: JSON.stringify(batch) });
  assert.equal(answer.status, 204);
});

test('a signed report is forwarded unchanged, and a malformed signature is refused', async () => {
  const signed = { sequence: 3, body: 'anything at all', mac: 'ab'.repeat(32) };
  const answer = await ask('install/events', { method: 'POST', body: JSON.stringify([signed]) });
  assert.equal(answer.status, 204);
  const events = await eventsAfter(lab, 0, 7);
  assert.deepEqual(events.at(-1)?.event, {
    type: 'install',
    installId: view.install?.plan.installId,
    event: signed,
  });
  const wrong = JSON.stringify([{ ...signed, mac: 'short' }]);
  const refused = await ask('install/events', { method: 'POST', body: wrong });
  assert.equal(refused.status, 400);
  assert.match(refused.body.toString(), /^0\.mac: /);
});

test('a malformed report is refused whole by the name of its field', async () => {
  const batch = [
    { type: 'stage-started', atMs: 5, stage: 'image' },
    { type: 'stage-started', atMs: 5, stage: 'dancing' },
  ];
  const answer = await ask('install/events', { method: 'POST', body: JSON.stringify(batch) });
  assert.equal(answer.status, 400);
  assert.match(answer.body.toString(), /^1\.stage: /);
  assert.equal((await ask('install/events', { method: 'POST', body: '{' })).status, 400);
  const large = await ask('install/events', { method: 'POST', body: Buffer.alloc(262_145, 32) });
  assert.equal(large.status, 413);
});

test('the paths of an installation get 404 when it is over', async () => {
  const running = { ...exampleView(), revision: view.revision + 1 };
  assert.equal((await lab.put(running)).status, 204);
  for (const path of [
    'install/plan.json',
    'install/hooks.json',
    'install/',
    'os/scripts/create',
    'os/scripts',
    'os/definition.tar',
    'os/image',
    'os/package',
    'os/os-install-package',
  ]) {
    assert.equal((await ask(path)).status, 404, path);
  }
  assert.equal((await ask('install/events', { method: 'POST', body: '[]' })).status, 404);
  assert.equal((await ask('os/')).body.toString(), 'parameters/\nparameters.json\n');
});
