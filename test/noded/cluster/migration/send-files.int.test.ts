import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, duplexPair } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { SendRate } from '#shared/stream/send-rate.ts';
import { MIB } from '#shared/units/bytes.ts';
import { sendFiles } from '../../../../noded/cluster/migration/send-files.ts';
import type {
  FileTransfer,
  MigrationTargetClient,
} from '../../../../noded/cluster/migration/migration-target-client.ts';

const SIZE = 3 * MIB;
const AT = { uuid: 'instance', session: 'session', takesStreams: true, rate: null };

/** Sends a file of random bytes to a target whose end of the stream a function plays. */
async function send(
  t: TestContext,
  play: (far: Duplex) => void,
  abort = new AbortController(),
  rate: SendRate | null = null,
): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-send-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = await open(join(folder, 'disk0.raw'), 'w+');
  t.after(() => file.close());
  await file.write(randomBytes(SIZE));
  const sendFile = async (_at: unknown, transfer: FileTransfer, signal: AbortSignal) => {
    const [near, far] = duplexPair();
    far.on('error', () => undefined);
    play(far);
    await transfer.send(near, signal);
  };
  // Only streams are opened.
  const target = { sendFile } as unknown as MigrationTargetClient;
  const report = { progress: () => undefined } as never;
  const departing = { name: 'disk0.raw', sizeBytes: SIZE, takenBytes: SIZE, file };
  return sendFiles([departing], { ...AT, rate }, { signal: abort.signal, report }, target);
}

function position(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

for (const [what, answers] of Object.entries({
  'beyond the file': [2n ** 64n - 1n],
  'that no record had': [1],
  'before anything was sent': [MIB],
  'before the end': [0, MIB],
  'beyond the end': [0, SIZE + 1],
}))
  test(`a target that answers a position ${what} has cut the stream`, async (t) => {
    const play = (far: Duplex): void => {
      for (const answer of answers) far.write(position(answer));
      far.resume();
      far.once('end', () => far.end());
    };
    await assert.rejects(send(t, play), { code: 'NODE_UNREACHABLE' });
  });

for (const [what, begin] of Object.entries<(far: Duplex) => void>({
  'that answers nothing': () => undefined,
  'that reads nothing': (far) => void far.write(position(0)),
  'that never ends': (far) => {
    far.write(position(0));
    far.resume();
  },
}))
  for (const [when, laterMs] of [
    ['before the first byte', 0],
    ['later', 50],
  ] as const)
    test(`a cancelled move leaves a target ${what}: ${when}`, { timeout: 10_000 }, async (t) => {
      const abort = new AbortController();
      const cancelled = new Error('cancelled');
      const play = (far: Duplex): void => {
        begin(far);
        if (laterMs === 0) abort.abort(cancelled);
        else setTimeout(() => abort.abort(cancelled), laterMs);
      };
      await assert.rejects(send(t, play, abort), cancelled);
    });

test('a rate slows the stream down', async (t) => {
  const play = (far: Duplex): void => {
    far.write(position(0));
    far.resume();
    far.once('end', () => far.end(position(SIZE)));
  };
  const startedAtMs = performance.now();
  await send(t, play, new AbortController(), new SendRate(6 * MIB));
  // 3 MiB at 6 MiB/s, less the burst.
  assert.ok(performance.now() - startedAtMs > 350);
});

test('a rate that allows nothing does not delay a cancellation', async (t) => {
  const abort = new AbortController();
  const cancelled = new Error('cancelled');
  const play = (far: Duplex): void => {
    far.write(position(0));
    far.resume();
    setTimeout(() => abort.abort(cancelled), 50);
  };
  await assert.rejects(send(t, play, abort, new SendRate(1)), cancelled);
});
