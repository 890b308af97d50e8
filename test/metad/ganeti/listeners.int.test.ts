import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { ChannelLab, type Guest } from '../support/channel-lab.ts';
import { askFromGuest } from '../support/guest-http.ts';
import { LuxiClient } from '../support/luxi-client.ts';

const ADD = 'add, communication on, one parameter of each visibility';
const requests = JSON.parse(
  await readFile(new URL('../../../fixtures/metad/ganeti-requests.json', import.meta.url), 'utf8'),
) as Record<string, { args: [unknown] }>;
const LINK = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
const PATH = '/latest/meta-data/hostname';
/** Longer than an answer takes by far. */
const NO_ANSWER_MS = 1500;

async function startLab(...options: readonly string[]): Promise<ChannelLab> {
  return await ChannelLab.create((directory) => [
    ...['--ganeti', '--ganeti-socket', join(directory, 'socket/ganeti-metad'), ...options],
  ]);
}

async function addServedGuest(lab: ChannelLab): Promise<Guest> {
  const guest = await lab.addGuest(LINK);
  using client = await LuxiClient.open(join(lab.directory, 'socket/ganeti-metad'));
  const pushed = await client.call('updateConfig', requests[ADD]?.args[0]);
  assert.deepEqual(pushed, { success: true, result: [] });
  return guest;
}

/** Adds a container as Docker does: its own namespace, which the guest forwards and masquerades. */
async function addContainer(guest: Guest): Promise<AsyncDisposable & { readonly name: string }> {
  const name = `${guest.namespace}-c`;
  await run('ip', ['netns', 'add', name]);
  const inside = (...words: string[]): Promise<unknown> => run('ip', ['-n', name, ...words]);
  const outside = (...words: string[]): Promise<unknown> => guest.run('ip', ...words);
  await outside(
    ...(['link', 'add', 'docker0', 'type', 'veth', 'peer', 'name', 'eth0'] as const),
    ...['netns', name],
  );
  await outside('addr', 'add', '172.17.0.1/16', 'dev', 'docker0');
  await outside('link', 'set', 'docker0', 'up');
  await inside('addr', 'add', '172.17.0.2/16', 'dev', 'eth0');
  await inside('link', 'set', 'eth0', 'up');
  await inside('route', 'add', 'default', 'via', '172.17.0.1');
  await guest.run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await guest.run('nft', 'add', 'table', 'ip', 'docker');
  const hook = '{ type nat hook postrouting priority 100; }';
  await guest.run('nft', 'add', 'chain', 'ip', 'docker', 'nat', hook);
  await guest.run('nft', 'add', 'rule', 'ip', 'docker', 'nat', 'oifname', 'eth0', 'masquerade');
  return {
    name,
    [Symbol.asyncDispose]: async () => void (await run('ip', ['netns', 'del', name])),
  };
}

function ask(namespace: string): Promise<number> {
  const signal = AbortSignal.timeout(NO_ANSWER_MS);
  return askFromGuest(namespace, PATH, { signal }).then(({ status }) => status);
}

test('containers in a guest get answers, as from Ganeti’s daemon', async () => {
  await using lab = await startLab();
  const guest = await addServedGuest(lab);
  await using container = await addContainer(guest);
  assert.equal(await ask(container.name), 200);
});

test('a hop limit of 1 keeps out containers, and the guest still gets answers', async () => {
  await using lab = await startLab('--hop-limit', '1');
  const guest = await addServedGuest(lab);
  await using container = await addContainer(guest);
  await assert.rejects(ask(container.name));
  assert.equal(await ask(guest.namespace), 200);
});
