import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runProgram } from './support/run-program.ts';
import { sampleInstance } from './support/samples.ts';

/** That keys are verified takes a real sshd: one-machine.vm.test.ts has it. */
const [KEY, OTHER] = ['A', 'B'].map(
  (last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${last}`,
) as [string, string];
let daemon: DaemonStandIn;

before(async () => {
  daemon = await startDaemonStandIn();
  const ssh = { user: 'debian', hostKeys: [KEY], saidHostKeys: [OTHER] };
  daemon.instances.push(sampleInstance({ name: 'web1', ssh }), sampleInstance({ name: 'mute' }));
});
after(() => daemon.close());

const gnt = (args: readonly string[], env: Record<string, string> = {}) =>
  runProgram('gnt-instance', args, { root: daemon.root, env });

test('known-hosts prints the trusted keys, and says which others the guest claims', async () => {
  const { status, stdout, stderr } = await gnt(['known-hosts']);
  assert.deepEqual([status, stdout], [0, `web1 ${KEY}\n`]);
  assert.match(stderr, /warning: the guest of web1 now says .* ssh-ed25519 SHA256:[\w+/]{43}\. /);
});

test('without keys there is no login, and no question whether to trust whoever answers', async () => {
  for (const args of [
    ['ssh', 'mute'],
    ['known-hosts', 'mute'],
  ]) {
    const { status, stderr } = await gnt(args);
    assert.equal(status, 1);
    assert.match(stderr, /^error\[SSH_HOST_KEYS\]: the SSH host keys of mute are not known/m);
  }
});

test("ssh speaks through the daemon with the guest's sshd, and leaves no file behind", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt ssh%h-'));
  t.after(() => rm(directory, { recursive: true }));
  let said = '';
  daemon.onRaw = (socket, path) => {
    assert.equal(path, '/v1/instances/web1/connect/2222');
    socket.write('SSH-2.0-test\r\n');
    socket.once('data', (chunk: Buffer) => {
      said = chunk.toString('latin1');
      socket.end();
    });
  };
  const { status, stderr } = await gnt(['ssh', '-p', '2222', 'web1', '--', 'true', '-x'], {
    TMPDIR: directory,
  });
  assert.equal(status, 255, stderr);
  assert.match(said, /^SSH-2\.0-OpenSSH/);
  assert.match(stderr, /^ssh to web1 as debian failed$/m);
  assert.deepEqual(await readdir(directory), []);
});

test('what an operator accepts are the very keys that the guest was heard to say', async () => {
  const { status, stderr } = await gnt(['modify', '--accept-host-keys', 'web1']);
  assert.equal(status, 0, stderr);
  const [opcode] = daemon.submitted as readonly { hostKeys?: readonly string[] }[];
  assert.deepEqual(opcode?.hostKeys, [OTHER]);
  assert.match(stderr, /^accepting ssh-ed25519 SHA256:/m);
  assert.equal((await gnt(['modify', '--accept-host-keys', 'mute'])).status, 1);
});
