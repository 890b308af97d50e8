import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { parseRapiOptions } from '../../../../noded/api/rapi/rapi-settings.ts';

const paths = createRootPaths('/r');

test('without the option there is no remote API, and its files alone are a mistake', () => {
  assert.equal(parseRapiOptions({}, paths), null);
  assert.throws(() => parseRapiOptions({ rapiUsers: '/x' }, paths), { code: 'USAGE' });
});

test("an address without a port gets Ganeti's", () => {
  const addresses = ['192.0.2.1', '[2001:db8::1]:5081', 'node1:0'].map((rapi) => {
    const settings = parseRapiOptions({ rapi }, paths);
    return [settings?.host, settings?.port, settings?.usersFile, settings?.certificateFile];
  });
  const files = ['/r/etc/gnt/rapi-users', '/r/etc/gnt/rapi.pem'];
  assert.deepEqual(addresses, [
    ['192.0.2.1', 5080, ...files],
    ['2001:db8::1', 5081, ...files],
    ['node1', 0, ...files],
  ]);
});

test('what is no address is refused', () => {
  for (const rapi of ['', ':5080', '2001:db8::1', 'host:65536', 'host:x', 'a b']) {
    assert.throws(() => parseRapiOptions({ rapi }, paths), { code: 'USAGE' }, rapi);
  }
});
