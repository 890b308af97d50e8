import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { QmpClient } from '../../../noded/vmm/qmp-client.ts';
import type { QmpEvent } from '../../../noded/vmm/qmp-client.ts';

const GREETING = '{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": ["oob"]}}\r\n';

/** The test plays a QEMU process that its guest has taken over. */
describe('the conversation with QEMU', () => {
  let directory: string;
  let server: Server | undefined;
  let answer: (socket: Socket, command: { execute: string; id: number }) => void;
  let greeting: string;
  const sockets = new Set<Socket>();
  const events: QmpEvent[] = [];

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gnt-test-qmp-'));
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.write(greeting);
      socket.setEncoding('utf8').on('data', (text: string) => {
        for (const line of text.split('\n').filter(Boolean)) {
          answer(socket, JSON.parse(line) as { execute: string; id: number });
        }
      });
    });
    server.listen(join(directory, 'qmp'));
    await once(server, 'listening');
  });
  after(async () => {
    server?.close();
    for (const socket of sockets) socket.destroy();
    await rm(directory, { recursive: true });
  });

  function connectWith(
    options: {
      greeting?: string;
      answer?: typeof answer;
      timeoutMs?: number;
      signal?: AbortSignal;
    } = {},
  ): Promise<QmpClient> {
    greeting = options.greeting ?? GREETING;
    answer = (socket, command) => {
      if (command.execute === 'qmp_capabilities' || !options.answer) {
        socket.write(`{"return": {}, "id": ${command.id}}\r\n`);
      } else options.answer(socket, command);
    };
    events.length = 0;
    return QmpClient.connect({
      socketPath: join(directory, 'qmp'),
      onEvent: (event) => events.push(event),
      timeoutMs: options.timeoutMs ?? 10_000,
      ...(options.signal && { signal: options.signal }),
    });
  }

  test('returns the answer of each command, in any order', async () => {
    const waiting: number[] = [];
    const client = await connectWith({
      answer: (socket, { id }) => {
        waiting.unshift(id);
        if (waiting.length < 3) return;
        for (const late of waiting) socket.write(`{"return": "for ${late}", "id": ${late}}\r\n`);
      },
    });
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => client.execute(name)));
    assert.deepEqual(answers, ['for 2', 'for 3', 'for 4']);
    client.close();
  });

  test('delivers events that came before QEMU closed', async () => {
    const client = await connectWith({
      answer: (socket) => {
        socket.end(
          '{"timestamp": {}, "event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}\r\n',
        );
      },
    });
    await assert.rejects(client.execute('query-status'), { code: 'QMP' });
    await client.closed;
    assert.deepEqual(events, [
      { name: 'SHUTDOWN', data: { guest: true, reason: 'guest-shutdown' } },
    ]);
    await assert.rejects(client.execute('query-status'), { code: 'QMP' });
  });

  test('passes on an error of QEMU, cut to less than 1000 characters', async () => {
    const desc = 'x'.repeat(100_000);
    const client = await connectWith({
      answer: (socket, { id }) => {
        socket.write(`${JSON.stringify({ error: { class: 'GenericError', desc }, id })}\r\n`);
      },
    });
    await assert.rejects(client.execute('x'), (error: Error) => error.message.length < 1000);
    client.close();
  });

  test('fails without a greeting, without an answer, and when it is aborted', async () => {
    await assert.rejects(connectWith({ greeting: '', timeoutMs: 50 }), { code: 'QMP' });
    const client = await connectWith({ answer: () => undefined });
    await assert.rejects(client.execute('x', {}, 50), { code: 'QMP' });
    assert.ok(client.isOpen);
    client.close();
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    const connecting = connectWith({ greeting: '', signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(connecting, reason);
  });

  test('closes the connection on malformed messages', async () => {
    const nonsense = [
      'hello\r\n',
      '[]\r\n',
      'null\r\n',
      '{"return": {}, "id": "1"}\r\n',
      '{"event": 5}\r\n',
      '{"error": {}}\r\n',
      `{"event": "${'E'.repeat(65)}"}\r\n`,
      '\u0000\u0001\r\n',
      `${'['.repeat(100_000)}\r\n`,
      'x'.repeat(2 * 1024 * 1024),
      '{"event": "RTC_CHANGE", "data": {}}\r\n'.repeat(5_000),
    ];
    for (const text of nonsense) {
      const client = await connectWith({ answer: (socket) => socket.write(text) });
      await assert.rejects(client.execute('x'), { code: 'QMP' }, text.slice(0, 40));
      await client.closed;
      assert.equal(client.isOpen, false);
    }
  });

  test('ignores answers without a command', async () => {
    const client = await connectWith({
      answer: (socket, { id }) => {
        socket.write(`{"return": 1, "id": 999}\r\n{"error": {"class": "a", "desc": "b"}}\r\n`);
        socket.write(`{"return": 2, "id": ${id}}\r\n{"return": 3, "id": ${id}}\r\n`);
      },
    });
    assert.equal(await client.execute('x'), 2);
    client.close();
  });

  test('fails with ENOENT when the socket is missing', async () => {
    const connecting = QmpClient.connect({
      socketPath: join(directory, 'nobody'),
      onEvent: () => undefined,
      timeoutMs: 10_000,
    });
    await assert.rejects(connecting, { code: 'ENOENT' });
  });
});
