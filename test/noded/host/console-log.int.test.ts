import assert from 'node:assert/strict';
import { closeSync, writeSync } from 'node:fs';
import { test } from 'node:test';
import { ConsoleLog } from '../../../noded/host/console-log.ts';

test('gives back the end of what was appended, and goes on after it was bounded', () => {
  const log = ConsoleLog.create();
  const writer = log.openForAppending();
  try {
    writeSync(writer, 'first second');
    assert.equal(log.readTail(6), 'second');
    assert.equal(log.readTail(100), 'first second');
    log.bound(100);
    assert.equal(log.readTail(100), 'first second');
    log.bound(5);
    writeSync(writer, 'third');
    assert.equal(log.readTail(100), 'third');
  } finally {
    closeSync(writer);
    log.close();
  }
  assert.equal(log.readTail(100), '');
});

test('is found again in the process that writes it', () => {
  const log = ConsoleLog.create();
  const writer = log.openForAppending();
  try {
    writeSync(writer, 'said');
    const found = ConsoleLog.ofProcess(process.pid);
    assert.equal(found?.readTail(100), 'said');
    found.close();
    assert.equal(ConsoleLog.ofProcess(999_999_999), undefined);
  } finally {
    closeSync(writer);
    log.close();
  }
});
