import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';
import { confineOpcode } from '../../../noded/rapi/confine-opcode.ts';

const SECRETS = ['/etc/shadow', '/var/lib/gnt/disks/other', '/etc/gnt/cluster.key'];
const kinds = ['INSTANCE_CREATE', 'INSTANCE_REINSTALL', 'INSTANCE_SET_PARAMS'] as const;

/** Every field of an operation that names a file of the node. */
function askFor(path: string) {
  const files = ['cdrom_image_path', 'kernel_path', 'initrd_path'];
  const packages = kinds.map((kind) => ({ opcode: kind, personalizationPackage: path }));
  const images = kinds.slice(0, 2).map((kind) => ({ opcode: kind, osImage: path }));
  const parameters = files.flatMap((file) => [
    ...kinds.map((kind) => ({ opcode: kind, installParameters: { [file]: path } })),
    { opcode: kinds[0], hvparams: { [file]: path } },
    { opcode: kinds[2], hvparams: { [file]: path } },
  ]);
  return [...packages, ...images, ...parameters].map((asked) =>
    opcode.parse({ name: 'web1', ...asked }),
  );
}

test('no file of the node is named by the remote API unless the operator named its folder', () => {
  for (const path of SECRETS) {
    for (const asked of askFor(path)) {
      for (const folders of [[], ['/srv/images']]) {
        assert.throws(
          () => confineOpcode(asked, folders),
          { code: 'PATH_NOT_ALLOWED' },
          JSON.stringify(asked),
        );
      }
    }
  }
  const relative = opcode.parse({
    ...{ opcode: 'INSTANCE_SET_PARAMS', name: 'web1', hvparams: { kernel_path: 'etc/shadow' } },
  });
  assert.throws(() => confineOpcode(relative, ['/']), { code: 'PATH_NOT_ALLOWED' });
});

test('what is below the folder is confined to it, wherever it is named', () => {
  for (const asked of askFor('/srv/images/a.tgz')) {
    const text = JSON.stringify(confineOpcode(asked, ['/srv/images']));
    assert.equal(text, JSON.stringify(asked).replace('/srv/images/', '/srv/images/./'));
  }
});

test('URLs, resets and operations without files stay as they are', () => {
  for (const asked of [
    { opcode: 'INSTANCE_CREATE', osImage: 'https://example.com/a.raw' },
    {
      opcode: 'INSTANCE_CREATE',
      installParameters: { cdrom_image_path: 'https://example.com/a.iso' },
    },
    {
      opcode: 'INSTANCE_SET_PARAMS',
      hvparams: { kernel_path: null },
      personalizationPackage: null,
    },
    { opcode: 'INSTANCE_SHUTDOWN' },
  ]) {
    const parsed = opcode.parse({ name: 'web1', ...asked });
    assert.deepEqual(confineOpcode(parsed, []), parsed);
  }
});
