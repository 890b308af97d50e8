import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { debianTree } from '../lab/cached-tree.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { GuestTree } from './support/guest-tree.ts';
import { exampleView } from './support/view-fixture.ts';

const PACKAGES = ['google-guest-agent', 'iproute2', 'openssh-server', 'passwd', 'sudo', 'netbase'];
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAnna';
const AUTHORIZED = 'home/anna/.ssh/authorized_keys';
/** Only a hang lasts so long. */
const LIMIT_MS = 60_000;

function keyUntil(comment: string, expireOn: string): string {
  return `anna:${KEY}${comment} google-ssh {"userName":"${comment}","expireOn":"${expireOn}"}`;
}

test('Google’s guest agent creates users, keeps keys until they expire, follows changes and publishes its host keys', async (t) => {
  const root = await debianTree('google-guest-agent', PACKAGES, ['/usr/share/man/*']);
  const lab = await ChannelLab.create();
  t.after(() => lab[Symbol.asyncDispose]());
  const first = [
    keyUntil('past', '2020-01-01T00:00:00+0000'),
    keyUntil('lasting', '2090-01-01T00:00:00+0000'),
  ];
  const view = exampleView({
    dialects: ['gce'],
    metadata: { 'ssh-keys': first.join('\n') },
  });
  const guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
  const tree = await GuestTree.create(root, guest.namespace);
  t.after(() => tree[Symbol.asyncDispose]());
  const untilKeys = async (isWanted: (text: string) => boolean): Promise<string> => {
    const end = Date.now() + LIMIT_MS;
    for (;;) {
      const text = (await tree.read(AUTHORIZED)) ?? '';
      if (isWanted(text)) return text;
      assert.ok(
        Date.now() < end,
        `the keys are\n${text}\n${(await tree.read('var/agent.log')) ?? ''}`,
      );
      await sleep(100);
    }
  };
  // systemctl would look for a systemd.
  await tree.write('usr/bin/systemctl', '#!/bin/sh\nexit 0\n');
  const agent = tree.run(`mount -t proc proc /proc
mount -t tmpfs tmpfs /run
google_guest_agent >/var/agent.log 2>&1 &
until [ -e /var/stop ]; do sleep 0.2; done
kill $!
`);
  const keys = await untilKeys((text) => text.includes('lasting'));
  assert.ok(!keys.includes('past'), keys);

  // The agent waits for a change with the ETag of its last answer.
  const metadata = { 'ssh-keys': `anna:${KEY}second` };
  assert.equal((await lab.put({ ...view, revision: 2, metadata })).status, 204);
  const changed = await untilKeys((text) => text.includes('second'));
  assert.ok(!changed.includes('lasting'), changed);

  const events = await eventsUntil(lab, 0, (some) =>
    some.some(({ event }) => event.type === 'host-keys' && event.keys.length >= 3),
  );
  const published = events.flatMap(({ event }) => (event.type === 'host-keys' ? [event.keys] : []));
  assert.equal(published.length, 1, 'the host trusts the keys of the first report only');
  const own = await tree.read('etc/ssh/ssh_host_ed25519_key.pub');
  const [type, blob] = (own ?? '').split(' ');
  assert.ok(published.at(-1)?.includes(`${type} ${blob}`), JSON.stringify(published));
  await tree.write('var/stop', '');
  await agent;
});
