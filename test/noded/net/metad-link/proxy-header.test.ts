import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyHeader } from '../../../../noded/net/metad-link/proxy-header.ts';

test('a PROXY header names the instance by address, authority and unique id, to the byte', () => {
  const instance = {
    name: 'web1',
    uuid: '6aa7b544-1f3d-49e9-b2b7-73836039b5cf',
    ip: '169.254.1.2',
  };
  const expected = Buffer.concat([
    Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    Buffer.from([0x21, 0x11, 0, 12 + 7 + 39]),
    Buffer.from([169, 254, 1, 2, 169, 254, 169, 254, 0x9c, 0x40, 0x0c, 0x46]),
    Buffer.from([0x02, 0, 4]),
    Buffer.from('web1'),
    Buffer.from([0x05, 0, 36]),
    Buffer.from(instance.uuid),
  ]);
  assert.deepEqual(proxyHeader(instance, 40_000, 3142), expected);
});
