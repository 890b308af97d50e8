import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { NO_WORLD, runConfined } from '../../../../appliance/agent/scripts/confine.ts';
import { readDump, writeDump } from '../../../../appliance/agent/scripts/dump-streams.ts';
import { isFilledWith } from '../../../lab/is-filled.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-dump-streams-'));
const disk = join(directory, 'disk');
const reporter = { progress: () => undefined };
const PATH = '/usr/bin:/bin';
const PADDING = 'padding of the disk';
after(() => rmSync(directory, { recursive: true }));

async function shell(
  script: string,
  streams: Parameters<typeof runConfined>[5],
): Promise<string[]> {
  const lines: string[] = [];
  const end = await runConfined(
    NO_WORLD,
    { path: '/' },
    ['/bin/sh', '-c', script],
    { PATH },
    (line) => lines.push(line),
    streams,
  );
  assert.ok(end.isSuccess, end.lastLines.join('\n'));
  return lines;
}

test('a script reads a dump to its last byte, and nothing of the padding', async () => {
  const dump = 'x'.repeat(3_000_001);
  writeFileSync(disk, dump + PADDING);
  const lines = await shell('wc -c', { stdin: readDump(disk, dump.length, reporter) });
  assert.deepEqual(lines, [String(dump.length)]);
});

test('a script may leave its dump unread and open in another program', async () => {
  writeFileSync(disk, 'x'.repeat(3_000_000));
  const stdin = readDump(disk, 3_000_000, reporter);
  assert.deepEqual(await shell('setsid sleep 20 <&0 & echo gone', { stdin }), ['gone']);
});

test('the output of a script is written to the disk, with the returned number of bytes', async () => {
  writeFileSync(disk, Buffer.alloc(4_000_000));
  const target = writeDump(disk, 4_000_000, reporter);
  const lines = await shell('head -c 3000001 /dev/zero | tr "\\0" y; echo told >&2', {
    stdout: target.stream,
  });
  assert.equal(await target.finish(), 3_000_001);
  assert.deepEqual(lines, ['told']);
  const written = readFileSync(disk);
  assert.ok(isFilledWith(0x79, written.subarray(0, 3_000_001)));
  assert.ok(isFilledWith(0, written.subarray(3_000_001)));
});

test('a script whose output exceeds the disk is an error with the limit', async () => {
  const target = writeDump(disk, 1_000_000, reporter);
  await assert.rejects(
    shell('exec cat /dev/zero', { stdout: target.stream }),
    (error) => isAppError(error, 'SCRIPT_FAILED') && /exceeds 1000000 bytes/.test(error.message),
  );
});
