import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_AUTOSTART } from '#shared/contract/autostart.ts';
import { hvParameters, nicSpec } from '#shared/contract/machine-parameters.ts';
import {
  autostartKeys,
  backendKeys,
  diskKeys,
  hypervisorKeys,
  installKeys,
  type KeyTable,
  nicKeys,
} from '#shared/contract/parameter-keys.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';

const tables: readonly KeyTable[] = [
  ...[autostartKeys, backendKeys, diskKeys],
  ...[hypervisorKeys, installKeys, nicKeys],
];

test('the help of each key is a sentence of at most 100 characters', () => {
  for (const table of tables) {
    for (const [key, { help }] of Object.entries(table)) {
      assert.ok(help.length <= 100, `${key}: ${help.length}`);
      assert.match(help, /^[A-Za-z].*\.$/, key);
    }
  }
});

test('the schema accepts each word and each limit that the table names for a key of -H', () => {
  for (const [key, { value }] of Object.entries(hypervisorKeys)) {
    const [, least, most] = /^(\d+)\.\.(\d+)$/.exec(value) ?? [];
    const isWords = /^[a-z-]+(\|[a-z-]+)+$/.test(value);
    for (const word of isWords ? value.split('|') : [])
      assert.ok(hvParameters.safeParse({ [key]: word }).success, `${key}=${word}`);
    if (least === undefined || most === undefined) continue;
    const isAccepted = (number: number) => hvParameters.safeParse({ [key]: number }).success;
    assert.deepEqual(
      [Number(least) - 1, Number(least), Number(most), Number(most) + 1].map(isAccepted),
      [false, true, true, false],
      key,
    );
  }
});

test('the defaults that the tables name are those that hold', () => {
  const { mac, mode } = nicSpec.parse({});
  assert.deepEqual([nicKeys.mac.default, nicKeys.mode.default], [mac, mode]);
  const { priority, delayS, restarts, lostSecrets } = DEFAULT_AUTOSTART;
  assert.deepEqual(
    [
      autostartKeys.priority.default,
      autostartKeys.delay.default,
      autostartKeys.restarts.default,
      autostartKeys.lost_secrets.default,
    ],
    [String(priority), String(delayS), String(restarts), lostSecrets],
  );
  assert.deepEqual(
    [
      hypervisorKeys.metadata_request_rate.default,
      hypervisorKeys.metadata_request_burst.default,
      hypervisorKeys.metadata_connections.default,
    ],
    [
      String(DEFAULT_LIMITS.requestsPerSecond),
      String(DEFAULT_LIMITS.burst),
      String(DEFAULT_LIMITS.connections),
    ],
  );
});
