import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reveal } from '#shared/secret/secret.ts';
import { parseGanetiInstance } from '../../../metad/ganeti/instance-dict.ts';

const UUID = '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f';
const nic = {
  ...{ uuid: UUID, name: 'front', mac: 'AA:00:00:00:00:01', ip: '10.9.0.5' },
  ...{ nicparams: { mode: 'bridged', link: 'br0' }, network: null },
};
const channel = (name: string, ip: unknown) => ({
  ...{ name: `ganeti:communication:${name}`, mac: 'aa:00:00:00:00:02', ip },
});
const dict = {
  ...{ uuid: UUID, name: 'web1', os: 'debian', hypervisor: 'kvm', primary_node: 'node1' },
  ...{ ctime: 1.5, disks: ['d1', 7], tags: ['blue'], nics: [nic, channel('web1', '169.254.1.2')] },
  ...{ beparams: { maxmem: 512, auto: true, name: 'x', list: [1] } },
  osparams: { pub: '1', count: 2 },
};

test("a Ganeti instance's fields become those of a view", () => {
  const { parameters, ...instance } = parseGanetiInstance(dict);
  assert.deepEqual(instance, {
    ...{ uuid: UUID, name: 'web1', os: 'debian', hypervisor: 'kvm', primaryNode: 'node1' },
    beparams: { maxmem: 512, auto: true, name: 'x' },
    nics: [
      {
        ...{ uuid: UUID, name: 'front', ip: '10.9.0.5', mode: 'bridged', link: 'br0' },
        ...{ mac: 'aa:00:00:00:00:01', communication: false },
      },
      {
        ...{ name: 'ganeti:communication:web1', ip: '169.254.1.2' },
        ...{ mac: 'aa:00:00:00:00:02', communication: true },
      },
    ],
    ...{ communicationIps: ['169.254.1.2'], disks: ['d1'], tags: ['blue'], createdAtMs: 1500 },
    ...{ hasSecrets: false, isReinstall: false },
  });
  assert.deepEqual(
    [...parameters].map(([name, { value, visibility }]) => [
      name,
      value && reveal(value),
      visibility,
    ]),
    [
      ['pub', '1', 'public'],
      ['count', '2', 'public'],
    ],
  );
});

test('the strictest visibility of a parameter counts, and only secrets make an instance secret', () => {
  const { parameters, hasSecrets, isReinstall } = parseGanetiInstance({
    ...{ ...dict, osparams: { a: '1', b: '1' }, osparams_private: { b: '2', c: '2' } },
    ...{ osparams_secret: { c: '3' }, osparams_public: {} },
  });
  const visibilities = [...parameters].map(([name, { visibility }]) => `${name}=${visibility}`);
  assert.deepEqual(visibilities, ['a=public', 'b=private', 'c=secret']);
  assert.deepEqual([hasSecrets, isReinstall], [true, true]);
});

test('missing fields are empty, and the UUID then depends on the name alone', () => {
  const bare = parseGanetiInstance({ name: 'web1', nics: [{}] });
  assert.deepEqual([bare.os, bare.disks, bare.beparams, bare.communicationIps], ['', [], {}, []]);
  assert.deepEqual(bare.nics, [{ mac: '', communication: false }]);
  assert.match(bare.uuid, /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(bare.uuid, parseGanetiInstance({ name: 'web1', nics: [] }).uuid);
  assert.notEqual(bare.uuid, parseGanetiInstance({ name: 'web2', nics: [] }).uuid);
});

test('after a rename both channel NICs count, that of the current name first', () => {
  const nics = [channel('old', '169.254.1.3'), channel('web1', '169.254.1.2')];
  const { communicationIps } = parseGanetiInstance({ ...dict, nics });
  assert.deepEqual(communicationIps, ['169.254.1.2', '169.254.1.3']);
});

for (const [ctime, createdAtMs] of [
  [0, 0],
  [-1, 0],
  ['1', 0],
  [8.64e12, 8.64e15],
  [8.65e12, 0],
] as const) {
  test(`a ctime of ${JSON.stringify(ctime)} is ${createdAtMs} ms`, () => {
    assert.equal(parseGanetiInstance({ ...dict, ctime }).createdAtMs, createdAtMs);
  });
}

for (const [what, value, message] of [
  ['a list', [], 'Expecting a dictionary'],
  ['null', null, 'Expecting a dictionary'],
  ['no name', { nics: [] }, 'Could not find instance name'],
  ['a number as its name', { ...dict, name: 7 }, 'Name is not a string'],
  ['a number as its OS', { ...dict, os: 7 }, 'Instance os is not a string'],
  ['a list as its parameters', { ...dict, osparams: [] }, 'Instance osparams is not a dictionary'],
  ['no NICs', { name: 'web1' }, "Could not find OS parameters key 'nics'"],
  ['a text as its NICs', { ...dict, nics: 'x' }, 'Instance nics is not an array'],
  ['a text as a NIC', { ...dict, nics: ['x'] }, /^.*wrong data in instance NICs/],
  [
    'a channel without an address',
    { ...dict, nics: [channel('a', null)] },
    /find .*communication IP/,
  ],
  ['a number as that address', { ...dict, nics: [channel('a', 7)] }, /IP is not a string/],
  ['an address beyond 255', { ...dict, nics: [channel('a', '169.254.1.256')] }, /not an IPv4/],
  ['an IPv6 address there', { ...dict, nics: [channel('a', 'fe80::1')] }, /not an IPv4 address/],
] as const) {
  test(`an instance with ${what} is refused in Ganeti's words`, () => {
    const expected = typeof message === 'string' ? `Could not get instance parameters: ${message}` : message; // prettier-ignore
    assert.throws(() => parseGanetiInstance(value), { message: expected });
  });
}
