import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootEnvDocument, foldBootEnv } from '#shared/contract/boot-env.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { confineOpcode } from '../../../../noded/api/rapi/confine-opcode.ts';

const SECRETS = ['/etc/shadow', '/var/lib/gnt/disks/other', '/etc/gnt/cluster.key'];
const kinds = ['INSTANCE_CREATE', 'INSTANCE_REINSTALL', 'INSTANCE_SET_PARAMS'] as const;

/** Returns every field of an operation that names a file of the node. */
function askFor(path: string) {
  const files = ['cdrom_image_path', 'kernel_path', 'initrd_path'];
  const packages = kinds.map((kind) => ({ opcode: kind, personalizationPackage: path }));
  const images = kinds.slice(0, 2).map((kind) => ({ opcode: kind, osImage: path }));
  const parameters = files.flatMap((file) => [
    ...kinds.map((kind) => ({ opcode: kind, installParameters: { [file]: path } })),
    { opcode: kinds[0], hvparams: { [file]: path } },
    { opcode: kinds[2], hvparams: { [file]: path } },
  ]);
  const archive = opcode.parse({ opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'd', source: path });
  const named = [...packages, ...images, ...parameters].map((asked) =>
    opcode.parse({ name: 'web1', ...asked }),
  );
  return [archive, ...named];
}

test('no file of the node is named by the remote API unless the operator named its folder', () => {
  for (const path of SECRETS) {
    for (const asked of askFor(path)) {
      for (const folders of [[], ['/srv/images']]) {
        assert.throws(
          () => confineOpcode(asked, { folders, hosts: [] }),
          { code: 'PATH_NOT_ALLOWED' },
          JSON.stringify(asked),
        );
      }
    }
  }
  const relative = opcode.parse({
    ...{ opcode: 'INSTANCE_SET_PARAMS', name: 'web1', hvparams: { kernel_path: 'etc/shadow' } },
  });
  assert.throws(() => confineOpcode(relative, { folders: ['/'], hosts: [] }), {
    code: 'PATH_NOT_ALLOWED',
  });
});

test('what is below the folder is confined to it, wherever it is named', () => {
  for (const asked of askFor('/srv/images/a.tgz')) {
    const text = JSON.stringify(confineOpcode(asked, { folders: ['/srv/images'], hosts: [] }));
    assert.equal(text, JSON.stringify(asked).replace('/srv/images/', '/srv/images/./'));
  }
});

test('names of images, resets and operations without files stay as they are', () => {
  for (const asked of [
    { opcode: 'INSTANCE_CREATE', osImage: 'debian/12' },
    {
      opcode: 'INSTANCE_SET_PARAMS',
      hvparams: { kernel_path: null },
      personalizationPackage: null,
    },
    { opcode: 'INSTANCE_SHUTDOWN' },
  ]) {
    const parsed = opcode.parse({ name: 'web1', ...asked });
    assert.deepEqual(confineOpcode(parsed, { folders: [], hosts: [] }), parsed);
  }
  // Its IsoUrl was already confined when it was written.
  const upload = opcode.parse({ opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'd' });
  assert.deepEqual(confineOpcode(upload, { folders: [], hosts: [] }), upload);
});

/** Returns every field of an operation that may be a URL. */
function askForUrl(url: string) {
  const media = kinds.flatMap((kind) => [
    { opcode: kind, installParameters: { cdrom_image_path: url } },
    ...(kind === 'INSTANCE_REINSTALL'
      ? []
      : [{ opcode: kind, hvparams: { cdrom_image_path: url } }]),
  ]);
  const packages = kinds.map((kind) => ({ opcode: kind, personalizationPackage: url }));
  const images = kinds.slice(0, 2).map((kind) => ({ opcode: kind, osImage: url }));
  const archive = opcode.parse({ opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'd', source: url });
  const named = [...packages, ...images, ...media].map((asked) =>
    opcode.parse({ name: 'web1', ...asked }),
  );
  return [archive, ...named];
}

test('a URL is marked as a remote user’s, wherever it is named and whatever its fragment was', () => {
  for (const fragment of ['', '#', '#x', '#remote', '#a#b']) {
    for (const asked of askForUrl(`https://example.com/a.tgz${fragment}`)) {
      const text = JSON.stringify(confineOpcode(asked, { folders: [], hosts: [] }));
      const expected = JSON.stringify(asked).replace(`tgz${fragment}"`, 'tgz#remote"');
      assert.equal(text, expected);
    }
  }
});

test('a URL of this host or its networks is refused unless the operator named its host', () => {
  const own = [
    '127.0.0.1:8080',
    '127.1',
    '[::1]',
    'localhost',
    '10.1.2.3',
    '[fd12::1]',
    '192.168.1.1',
  ];
  for (const host of own) {
    for (const asked of askForUrl(`http://${host}/a.tgz`))
      assert.throws(
        () => confineOpcode(asked, { folders: [], hosts: ['10.2.0.0/16'] }),
        { code: 'NOT_ALLOWED' },
        host,
      );
  }
  for (const hosts of [['10.1.0.0/16'], ['10.1.2.3']])
    for (const asked of askForUrl('http://10.1.2.3/a.tgz'))
      confineOpcode(asked, { folders: [], hosts });
  for (const asked of askForUrl('http://169.254.169.254/a.tgz'))
    assert.throws(() => confineOpcode(asked, { folders: [], hosts: ['169.254.0.0/16'] }), {
      code: 'NOT_ALLOWED',
    });
  for (const asked of askForUrl(`http://example.com/${'a'.repeat(4070)}.tgz`))
    assert.throws(() => confineOpcode(asked, { folders: [], hosts: [] }), /too long/);
});

/** Returns a BootEnv with its archive in each possible place of a document. */
function askForArchive(url: string) {
  const amd64 = { IsoFile: 'd.iso', IsoUrl: url };
  const places = [{ SupportedArchitectures: { amd64 } }, { SupportedArchitectures: { x86_64: amd64 } }, amd64]; // prettier-ignore
  return places.map((place) => {
    const document = bootEnvDocument.parse({ Name: 'd', OS: { Name: 'd', ...place } });
    const { bootEnv } = foldBootEnv(document);
    return opcode.parse({ opcode: 'BOOTENV_SET', bootEnvs: [bootEnv, bootEnv] });
  });
}

test('the URL of a boot environment’s archive has the bounds of an image’s', () => {
  const reach = { folders: [], hosts: ['10.1.2.3'] };
  for (const asked of askForArchive('https://example.com/d.iso#x')) {
    const confined = confineOpcode(asked, reach);
    const expected = JSON.stringify(asked).replaceAll('d.iso#x"', 'd.iso#remote"');
    assert.equal(JSON.stringify(confined), expected);
    opcode.parse(confined);
  }
  for (const asked of askForArchive('http://10.1.2.3/d.iso')) confineOpcode(asked, reach);
  for (const asked of askForArchive('')) assert.deepEqual(confineOpcode(asked, reach), asked);
  for (const host of ['127.0.0.1:8080', 'localhost', '10.9.9.9', '[::ffff:127.0.0.1]'])
    for (const asked of askForArchive(`http://${host}/d.iso`))
      assert.throws(() => confineOpcode(asked, reach), { code: 'NOT_ALLOWED' }, host);
  for (const asked of askForArchive(`http://example.com/${'a'.repeat(2025)}`))
    assert.throws(() => confineOpcode(asked, reach), /too long/);
});
