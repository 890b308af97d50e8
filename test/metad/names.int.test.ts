import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { exampleView } from './support/view-fixture.ts';

const ASK = `
import socket, sys
question = b"".join(bytes([len(p)]) + p.encode() for p in sys.argv[1].split(".")) + bytes([0, 0, 1, 0, 1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[2]))
s.sendto(bytes([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + question, ("169.254.169.254", 53))
try:
    answer = s.recv(512)
    print(answer[3] & 15, ".".join(map(str, answer[-4:])))
except (socket.timeout, ConnectionRefusedError) as error:
    print(type(error).__name__)
`;

test('a guest with the dialect gce resolves the name of the metadata service, and no other guest does', async () => {
  await using lab = await ChannelLab.create();
  const view = exampleView({ dialects: ['gce'], services: [] });
  const guest = await lab.addGuest(view.channel);
  const ask = async (name: string, seconds: number): Promise<string> => {
    const args = ['netns', 'exec', guest.namespace, 'python3', '-c', ASK, name, String(seconds)];
    return (await run('ip', args)).stdout.trim();
  };
  assert.equal((await lab.put(view)).status, 204);
  const name = 'metadata.google.internal';
  assert.equal(await ask(name, 5), '0 169.254.169.254');
  assert.match(await ask('deb.debian.org', 5), /^5 /);
  assert.equal((await lab.put({ ...view, revision: 2, dialects: ['ec2'] })).status, 204);
  assert.match(await ask(name, 1), /^(timeout|TimeoutError|ConnectionRefusedError)$/);
});
