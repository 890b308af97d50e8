import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  channelIp,
  deviceName,
  fileName,
  instanceName,
  macAddress,
  newInstanceName,
  newTag,
  osParameterName,
  timestampMs,
} from '#shared/contract/primitives.ts';

const cases = [
  [
    'instance name',
    instanceName,
    ['web1', 'a.b.c', '1a', 'x'.repeat(63)],
    [
      '',
      'Web1',
      'a_b',
      '-a',
      'a-',
      'a..b',
      '.a',
      'a.',
      'a/b',
      '..',
      'a b',
      'x'.repeat(64),
      'a\n',
      `${'a.'.repeat(127)}aa`,
    ],
  ],
  [
    'name of a new instance',
    newInstanceName,
    ['web1', '10', '10.0.0.1.example.com', '1.2.3.4.5', 'web.1', '10.0.0.1a'],
    ['10.0.0.1', '999.9.9.9', '10.1', '127.1.2', 'Web1', ''],
  ],
  [
    'tag that is given',
    newTag,
    ['web', 'rs_agent:type=right_link_lite', 'a.b+c*/d:e@f_g-h', 'x'.repeat(128)],
    ['', 'two words', 'a\n', '\u0007', 'ä', 'a,b', '#a', 'x'.repeat(129)],
  ],
  [
    'channel address',
    channelIp,
    ['169.254.1.0', '169.254.254.255', '169.254.169.253'],
    [
      '169.254.169.254',
      '169.254.0.0',
      '169.254.255.255',
      '10.0.0.1',
      '169.254.1',
      '169.254.1.256',
      'fe80::1',
    ],
  ],
  [
    'MAC address',
    macAddress,
    ['52:54:00:12:34:56'],
    ['52:54:00:12:34', '52-54-00-12-34-56', '52:54:00:12:34:5G', '52:54:00:AB:CD:EF'],
  ],
  ['device name', deviceName, ['gnt.com.0', 'br0'], ['', 'a'.repeat(16), 'a/b', 'a b']],
  [
    'parameter name',
    osParameterName,
    ['dhcp', 'a-b', 'A_1.x', 'change-stage/map', 'a/b/c'],
    ['', '-x', 'a b', 'a=b', '/a', 'a/', 'a//b', 'a/../b', 'a/.b', 'é'],
  ],
  ['file name', fileName, ['create', 'a.b'], ['', '.', '..', '.hidden', 'a/b', 'a\0b']],
] as const;

for (const [what, schema, good, bad] of cases) {
  test(`takes every well-formed ${what}`, () => {
    for (const value of good) assert.ok(schema.safeParse(value).success, value);
  });
  test(`refuses what is no ${what}`, () => {
    for (const value of bad) assert.ok(!schema.safeParse(value).success, JSON.stringify(value));
  });
}

test('a moment is one that a Date can hold', () => {
  assert.equal(timestampMs.safeParse(8.64e15).success, true);
  for (const none of [8.64e15 + 1, Infinity, Number.NaN, -1])
    assert.equal(timestampMs.safeParse(none).success, false, String(none));
});
