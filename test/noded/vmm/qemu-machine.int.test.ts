import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { QemuMachine } from '../../../noded/vmm/qemu-machine.ts';
import { RunDirectory } from '../../../noded/vmm/run-directory.ts';

test('pausing and resuming succeed when QEMU answers late', async (t) => {
  const top = await mkdtemp(join(tmpdir(), 'gnt-machine-'));
  t.after(() => rm(top, { recursive: true }));
  const runDirectory = new RunDirectory(top, randomUUID());
  await mkdir(runDirectory.path);
  const asked = new EventEmitter();
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    socket.write('{"QMP": {}}\r\n');
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\n').filter(Boolean)) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        const returned = execute === 'query-block' ? '[]' : '{"status": "running"}';
        const answer = () => socket.write(`{"return": ${returned}, "id": ${id}}\r\n`);
        if (execute === 'stop' || execute === 'cont') asked.emit(execute, answer);
        else answer();
      }
    });
  });
  t.after(() => server.close());
  server.listen(runDirectory.qmpSocket);
  await once(server, 'listening');
  // The tested methods use neither the process nor its output.
  const parts = { runDirectory } as unknown as ConstructorParameters<typeof QemuMachine>[0];
  const machine = new QemuMachine(parts);
  await machine.connect(5_000);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const [command, act] of [
    ['stop', () => machine.pause()],
    ['cont', () => machine.resume()],
  ] as const) {
    const heard = once(asked, command) as Promise<[() => void]>;
    const acting = act();
    const [answer] = await heard;
    t.mock.timers.tick(60_000);
    answer();
    await assert.doesNotReject(acting);
  }
});

test('a NIC that the guest releases late is reported and removed with its netdev', async (t) => {
  const top = await mkdtemp(join(tmpdir(), 'gnt-machine-'));
  t.after(() => rm(top, { recursive: true }));
  const runDirectory = new RunDirectory(top, randomUUID());
  await mkdir(runDirectory.path);
  const part = randomUUID();
  const commands: string[] = [];
  let tell = (): unknown => undefined;
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    socket.write('{"QMP": {}}\r\n');
    tell = () =>
      socket.write(
        `{"event": "DEVICE_DELETED", "data": {"device": "part-${part}", "path": "/x"}, "timestamp": {"seconds": 1, "microseconds": 1}}\r\n`,
      );
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\n').filter(Boolean)) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        commands.push(execute);
        const isList = ['query-block', 'query-fdsets', 'qom-list'].includes(execute);
        const returned = isList ? '[]' : '{"status": "running"}';
        socket.write(`{"return": ${returned}, "id": ${id}}\r\n`);
      }
    });
  });
  t.after(() => server.close());
  server.listen(runDirectory.qmpSocket);
  await once(server, 'listening');
  // Its process is not looked at by this.
  const parts = { runDirectory, logger: silentLogger } as unknown as ConstructorParameters<
    typeof QemuMachine
  >[0];
  const machine = new QemuMachine(parts);
  await machine.connect(5_000);
  const released = new Promise((resolve) => (machine.onRelease = resolve));
  tell();
  assert.equal(await released, part);
  assert.ok(commands.includes('netdev_del'), commands.join(' '));
});
