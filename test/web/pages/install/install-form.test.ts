import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode as opcodeSchema } from '#shared/contract/opcode.ts';
import { fieldOfFailure } from '../../../../web/pages/install/field-of-failure.ts';
import {
  BLANK_NIC,
  chooseDiskBytes,
  EMPTY_FORM,
  findFaults,
  type InstallForm,
  isImageName,
  readBytes,
  type Resolved,
  toCreate,
} from '../../../../web/pages/install/install-form.ts';

const GIB = 2 ** 30;
const DEBIAN: Resolved = {
  name: 'debian/12',
  catalogue: 'built-in',
  source: 'https://example.com/debian.qcow2',
  checksum: `sha256:${'a'.repeat(64)}`,
  format: 'auto',
  user: 'debian',
  minDiskBytes: 12 * GIB,
  cloudInit: null,
  verified: 'https',
  isOffline: false,
};
const filled: InstallForm = { ...EMPTY_FORM, name: 'web1', image: 'debian/12' };

test('sizes have units, and a bare number is in GiB', () => {
  const sizes = ['20', '20G', '1,5g', '512M', '1 TiB'].map(readBytes);
  assert.deepEqual(sizes, [20 * GIB, 20 * GIB, 1.5 * GIB, GIB / 2, 1024 * GIB]);
  assert.deepEqual(['', '0', '-1', 'x', '1K'].map(readBytes), Array(5).fill(undefined));
});

test('the default disk grows to the size that the image requires', () => {
  assert.equal(chooseDiskBytes('', {}, null), 10 * GIB);
  assert.equal(chooseDiskBytes('', { diskBytes: 5 * GIB }, 12 * GIB), 12 * GIB);
  assert.equal(chooseDiskBytes('20', {}, 12 * GIB), 20 * GIB);
});

test('names of images differ from paths and URLs', () => {
  assert.deepEqual(
    ['debian/12', 'imported:x', '/srv/a.raw', 'https://example.com/a', './a', ''].map(isImageName),
    [true, true, false, false, false, false],
  );
});

test('an empty form asks for a name and an image', () => {
  assert.deepEqual(Object.keys(findFaults(EMPTY_FORM, undefined)), ['name', 'image']);
  assert.deepEqual(findFaults(filled, DEBIAN), {});
});

const faulty: readonly [keyof InstallForm, Partial<InstallForm>, RegExp][] = [
  ['size', { size: '5G' }, /at least 12288M/],
  ['size', { size: 'big' }, /20G/],
  ['disks', { disks: [{ size: '' }] }, /size/],
  ['memory', { memory: 'much' }, /2G/],
  ['vcpus', { vcpus: '0' }, /1 to 255/],
  ['nics', { nics: [{ ...BLANK_NIC, kind: 'network' }] }, /no network/],
  ['keys', { keys: '-----BEGIN OPENSSH PRIVATE KEY-----' }, /private key/],
  ['packagePassword', { packageUser: 'me' }, /password/],
  ['hooks', { hooks: [{ name: '', text: 'steps: []' }] }, /file name/],
  [
    'parameters',
    {
      parameters: [
        { name: 'a', value: '1', visibility: 'public' },
        { name: 'a', value: '2', visibility: 'secret' },
      ],
    },
    /a occurs twice/,
  ],
];
for (const [field, part, message] of faulty) {
  test(`the form names the fault of ${field}: ${message.source}`, () => {
    const faults = findFaults({ ...filled, ...part }, DEBIAN);
    assert.deepEqual(Object.keys(faults), [field]);
    assert.match(faults[field] ?? '', message);
  });
}

test('a filled form becomes a creation that the node accepts', () => {
  const opcode = toCreate(
    {
      ...filled,
      size: '20',
      disks: [{ size: '1G' }],
      packageSource: 'https://example.com/site.tar.gz',
      packageChecksum: DEBIAN.checksum,
      memory: '2G',
      vcpus: '2',
      nics: [
        BLANK_NIC,
        { ...BLANK_NIC, kind: 'network', to: 'lan' },
        { ...BLANK_NIC, kind: 'bridge', to: 'br1' },
        { kind: 'bridge', to: 'br2', ip: '192.0.2.5/24', gateway: '192.0.2.1', dns: '192.0.2.2' },
      ],
      keys: '# mine\nssh-ed25519 AAAA me@host\n\n',
      userData: '#cloud-config\n# ümlaut',
      tags: 'web, prod',
      parameters: [
        { name: 'a', value: '1', visibility: 'public' },
        { name: 'b', value: '2', visibility: 'private' },
        { name: 'c', value: '3', visibility: 'secret' },
        { name: '', value: '', visibility: 'public' },
      ],
      start: false,
      onFailure: 'remove',
    },
    {},
    DEBIAN,
  );
  assert.deepEqual(
    opcodeSchema.parse(opcode),
    opcodeSchema.parse({
      opcode: 'INSTANCE_CREATE',
      name: 'web1',
      osImage: DEBIAN.source,
      osImageChecksum: DEBIAN.checksum,
      disks: [{ sizeBytes: 20 * GIB }, { sizeBytes: GIB }],
      personalizationPackage: 'https://example.com/site.tar.gz',
      personalizationChecksum: DEBIAN.checksum,
      beparams: { memoryMiB: 2048, vcpus: 2 },
      nics: [
        { mode: 'user' },
        { networkName: 'lan', ip: 'pool' },
        { link: 'br1' },
        {
          link: 'br2',
          network: {
            addresses: ['192.0.2.5/24'],
            gateways: ['192.0.2.1'],
            nameservers: ['192.0.2.2'],
          },
        },
      ],
      sshKeys: ['ssh-ed25519 AAAA me@host'],
      userData: Buffer.from('#cloud-config\n# ümlaut').toString('base64'),
      communication: true,
      tags: ['web', 'prod'],
      osParameters: { a: '1' },
      osParametersPrivate: { b: '2' },
      osParametersSecret: { c: '3' },
      start: false,
      onFailure: 'remove',
    }),
  );
});

test('the refusal of the node is shown at its field', () => {
  const of = (code: string, fields?: readonly string[]) =>
    fieldOfFailure({ code, details: fields === undefined ? {} : { fields } });
  assert.equal(of('VALIDATION', ['name']), 'name');
  assert.equal(of('VALIDATION', ['nics.0.mac', 'name']), 'nics');
  assert.equal(of('VALIDATION', ['beparams.memoryMiB']), 'memory');
  assert.equal(of('VALIDATION', ['osParametersSecret.x']), 'parameters');
  assert.equal(of('VALIDATION', ['hvparams.accel']), undefined);
  assert.equal(of('INSTANCE_EXISTS'), 'name');
  assert.equal(of('NO_ROOM'), undefined);
});
