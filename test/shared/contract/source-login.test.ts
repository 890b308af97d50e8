import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';

const CREATE = { opcode: 'INSTANCE_CREATE', name: 'web1', osImage: '/srv/a.raw' } as const;
const MODIFY = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1' } as const;

test("a login in a package's URL is its user and password, and the URL has none", () => {
  for (const base of [CREATE, { opcode: 'INSTANCE_REINSTALL', name: 'web1' } as const]) {
    const parsed = opcode.parse({
      ...base,
      personalizationPackage: 'https://joe%40x:p%25w%3A%2F@h.example.com:8443/a%20b.tgz?part=1',
    });
    assert.ok('personalizationPassword' in parsed);
    assert.equal(parsed.personalizationPackage, 'https://h.example.com:8443/a%20b.tgz?part=1');
    assert.equal(parsed.personalizationUser, 'joe@x');
    assert.equal(parsed.personalizationPassword, 'p%w:/');
    assert.doesNotMatch(JSON.stringify(redactOpcode(parsed)), /joe|p%/);
    assert.deepEqual(opcode.parse(parsed), parsed);
  }
});

test('a user alone leaves the password to be asked for', () => {
  const parsed = opcode.parse({ ...CREATE, personalizationPackage: 'ftp://joe@h/a.tgz' });
  assert.ok('personalizationUser' in parsed);
  assert.equal(parsed.personalizationUser, 'joe');
  assert.ok(!('personalizationPassword' in parsed));
});

const refused: Record<string, [OpcodeInput, string, RegExp]> = {
  "an image's URL": [{ ...CREATE, osImage: 'http://joe:hunter22@h/a.raw' }, 'osImage', /netrc/],
  'a URL with a blank before it': [
    { ...CREATE, osImage: ' http://joe:hunter22@h/a.raw' },
    'osImage',
    /netrc/,
  ],
  'a scheme that is not known': [
    { ...CREATE, osImage: 'gopher+x://joe:hunter22@h/a.raw' },
    'osImage',
    /netrc/,
  ],
  'what is no URL': [{ ...CREATE, osImage: 'http://joe:hunter22@h:x/' }, 'osImage', /netrc/],
  'a URL without slashes': [{ ...CREATE, osImage: 'scp:joe:hunter22@h' }, 'osImage', /netrc/],
  'a password alone': [
    { ...CREATE, personalizationPackage: 'http://:hunter22@h/a.tgz' },
    'personalizationPackage',
    /has no user/,
  ],
  'a lone percent sign': [
    { ...CREATE, personalizationPackage: 'http://joe:hunter22%@h/a.tgz' },
    'personalizationPackage',
    /%25/,
  ],
  'a package that is no URL': [
    { ...CREATE, personalizationPackage: 'http://joe:hunter22@h:x/a.tgz' },
    'personalizationPackage',
    /--personalization-user/,
  ],
  'two logins': [
    {
      ...CREATE,
      personalizationPackage: 'http://joe:hunter22@h/a.tgz',
      personalizationUser: 'jane',
    },
    'personalizationPackage',
    /another login is given/,
  ],
  'a package that is only stored': [
    { ...MODIFY, personalizationPackage: 'http://joe:hunter22@h/a.tgz' },
    'personalizationPackage',
    /--personalization-password/,
  ],
  'a kernel': [
    { ...CREATE, hvparams: { kernel_path: 'http://joe:hunter22@h/vmlinuz' } },
    'hvparams.kernel_path',
    /path on the node/,
  ],
  'an initrd that is only stored': [
    { ...MODIFY, hvparams: { initrd_path: 'http://joe:hunter22@h/initrd' } },
    'hvparams.initrd_path',
    /path on the node/,
  ],
  'a medium': [
    { ...CREATE, installParameters: { cdrom_image_path: 'http://joe:hunter22@h/a.iso' } },
    'installParameters.cdrom_image_path',
    /path on the node/,
  ],
  'an export': [{ ...CREATE, importFrom: 'http://joe:hunter22@h/x' }, 'importFrom', /name/],
};
for (const [what, [input, field, reason]] of Object.entries(refused)) {
  test(`a login that cannot be kept apart is refused without its words: ${what}`, () => {
    const parsed = opcode.safeParse(input);
    assert.ok(!parsed.success);
    const [issue] = parsed.error.issues;
    assert.equal(issue?.path.join('.'), field);
    assert.match(issue.message, reason);
    assert.doesNotMatch(JSON.stringify(parsed.error.issues), /joe|hunter22/);
  });
}

test('what only looks like a login is left alone', () => {
  for (const osImage of ['/srv/a:b@c.raw', 'https://h/a:b@c.raw', 'https://h/?to=a:b@c', 'a@b'])
    assert.equal(opcode.parse({ ...CREATE, osImage }).opcode, 'INSTANCE_CREATE');
});
