import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseDataOptions } from '../../../../noded/cluster/peers/data-settings.ts';

test('names and addresses of both families are accepted, with a port or without', () => {
  assert.equal(parseDataOptions({}), null);
  for (const [text, host, port] of [
    ['192.0.2.1', '192.0.2.1', 5082],
    ['192.0.2.1:6000', '192.0.2.1', 6000],
    ['node1.example.com:0', 'node1.example.com', 0],
    ['[::1]', '::1', 5082],
    ['[fd00::7]:6000', 'fd00::7', 6000],
  ] as const)
    assert.deepEqual(parseDataOptions({ dataAddress: text }), { host, port });
});

test('other forms, and addresses that no other node can connect to, are refused by name', () => {
  const refused = (text: string, message: RegExp): void =>
    assert.throws(
      () => parseDataOptions({ dataAddress: text }),
      (error) => isAppError(error, 'USAGE') && message.test(`${error.message} ${error.hint}`),
      text,
    );
  for (const text of ['', ':5082', '[::1', '::1', 'fd00::1:5082', '[::1]:99999', 'host:-1'])
    refused(text, /--data-address: '.*' is not HOST:PORT .*\[2001:db8::1\]:5082/);
  for (const text of ['0.0.0.0', '[::]:5082', '0', '[::ffff:0.0.0.0]', '[0:0:0:0:0:0:0:0]'])
    refused(text, /other nodes cannot connect to/);
});
