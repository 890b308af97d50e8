import assert from 'node:assert/strict';
import { closeSync, writeSync } from 'node:fs';
import { test } from 'node:test';
import { ConsoleLogs } from '../../../noded/host/console-log.ts';

test('returns the end of the appended text, and accepts more text after it is bounded', () => {
  const log = new ConsoleLogs({ maxBytes: 12, maxBytesOfAll: 100 }).create();
  const writer = log.openForAppending();
  try {
    writeSync(writer, 'first second');
    assert.equal(log.readTail(6), 'second');
    assert.equal(log.readTail(100), 'first second');
    log.bound();
    assert.equal(log.readTail(100), 'first second');
    writeSync(writer, '!');
    log.bound();
    writeSync(writer, 'third');
    assert.equal(log.readTail(100), 'third');
  } finally {
    closeSync(writer);
    log.close();
  }
  assert.equal(log.readTail(100), '');
});

test('is found by the process that writes it', () => {
  const log = new ConsoleLogs().create();
  const writer = log.openForAppending();
  try {
    writeSync(writer, 'said');
    const found = new ConsoleLogs().ofProcess(process.pid);
    assert.equal(found?.readTail(100), 'said');
    found.close();
    assert.equal(new ConsoleLogs().ofProcess(999_999_999), undefined);
  } finally {
    closeSync(writer);
    log.close();
  }
});

test('a log beyond its share of the total limit is emptied, and a smaller log is kept', () => {
  const logs = new ConsoleLogs({ maxBytes: 100, maxBytesOfAll: 300 });
  const machines = Array.from({ length: 6 }, () => {
    const log = logs.create();
    return { log, writer: log.openForAppending() };
  });
  const lengths = (): number[] => machines.map(({ log }) => log.readTail(1000).length);
  try {
    for (const [index, { log, writer }] of machines.entries()) {
      writeSync(writer, 'x'.repeat(index === 0 ? 40 : 90));
      log.bound();
    }
    assert.deepEqual(lengths(), [40, 0, 0, 0, 0, 0]);
    for (const { log } of machines.slice(3)) log.close();
    writeSync(machines[1]?.writer ?? -1, 'y'.repeat(90));
    machines[1]?.log.bound();
    assert.deepEqual(lengths(), [40, 90, 0, 0, 0, 0]);
  } finally {
    for (const { log, writer } of machines) {
      log.close();
      closeSync(writer);
    }
  }
});
