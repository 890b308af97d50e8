import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { receiveDescriptor } from '#shared/sys/descriptors.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';

/** Sends the text with the given number of descriptors. */
const SENDER = `
import socket, sys
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.connect(sys.argv[1])
for text in sys.argv[2:]:
    socket.send_fds(sender, [text.encode()], [0] * int(text))
`;

test('of descriptors that come together one is taken, and no other stays open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-test-'));
  const path = join(folder, 'socket');
  const socket = openUnixDatagrams(path);
  await promisify(execFile)('python3', ['-c', SENDER, path, '2', '7', '1', '0']);
  const before = (await readdir('/proc/self/fd')).length;
  const counts: number[] = [];
  for (let message = receiveDescriptor(socket, 10); message;) {
    const { text, fd } = message;
    assert.equal(fd === null, text === '0');
    if (fd !== null) closeFd(fd);
    counts.push(Number(text));
    message = receiveDescriptor(socket, 10);
  }
  assert.deepEqual(counts, [2, 7, 1, 0]);
  assert.equal((await readdir('/proc/self/fd')).length, before);
  closeFd(socket);
  await rm(folder, { recursive: true });
});
