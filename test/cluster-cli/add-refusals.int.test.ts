import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAddLab, SECRET } from './support/add-lab.ts';

const lab = createAddLab();
const add = lab.add;

const refusals: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    'a missing file',
    ['--os-parameters-secret', 'pw=@/no/such', 'web1'],
    /^error\[FILE_UNREADABLE\]: option --os-parameters-secret pw: \/no\/such cannot be read: no such file$/m,
  ],
  [
    'a missing document',
    ['--user-data', '/no/such', 'web1'],
    /^error\[FILE_UNREADABLE\]: option --user-data: \/no\/such/m,
  ],
  [
    'a key that is there twice',
    ['-O', 'a=1,a=2', 'web1'],
    /^error\[USAGE\]: Duplicate key 'a' in option --os-parameters$/m,
  ],
  [
    'one name in two visibilities',
    ['-O', 'a=1', '--os-parameters-secret', `a=@${'/dev/null'}`, 'web1'],
    /^error\[DUPLICATE_OS_PARAMETER\]: Cannot assign multiple values to OS parameters\. 'a' is public and secret; values are withheld$/m,
  ],
  [
    'a name that is none',
    ['--os-image', '/i', 'Web_1'],
    /^error\[VALIDATION\]: name: 'Web_1': not a valid instance name/m,
  ],
  [
    'a size that is none',
    ['-s', '10X', 'web1'],
    /^error\[USAGE\]: option --os-size: '10X' is not a size$/m,
  ],
  [
    'a disk without size',
    ['--disk', '0:name=a', 'web1'],
    /^error\[USAGE\]: Missing size for disk 0$/m,
  ],
  [
    'a disk number that is left out',
    ['--disk', '1:size=1G', 'web1'],
    /^error\[USAGE\]: option --disk: index 0 is missing$/m,
  ],
  [
    '-s together with --disk',
    ['-s', '1G', '--disk', '0:size=1G', 'web1'],
    /^error\[USAGE\]: Please use either the '--disk' or '-s' option$/m,
  ],
  [
    'disks of a diskless instance',
    ['-t', 'diskless', '-s', '1G', 'web1'],
    /^error\[USAGE\]: Diskless instance but disk information passed$/m,
  ],
  [
    'another hypervisor',
    ['-H', 'xen-pvm:kernel_path=/k', 'web1'],
    /^error\[VALIDATION\]: option -H: unknown hypervisor 'xen-pvm'$/m,
  ],
  [
    'an unknown hypervisor parameter',
    ['-H', 'kvm:acel=tcg', 'web1'],
    /^error\[USAGE\]: option -H: unknown parameter 'acel'$/m,
  ],
  [
    'an unknown acceleration',
    ['-H', 'kvm:accel=fast', 'web1'],
    /^error\[VALIDATION\]: -H accel: 'fast': must be one of auto, kvm, tcg$/m,
  ],
  [
    'an unknown backend parameter',
    ['-B', 'memry=1G', 'web1'],
    /^error\[USAGE\]: option -B: unknown parameter 'memry'$/m,
  ],
  [
    'an unknown dialect',
    ['--dialects', 'ec3', 'web1'],
    /^error\[USAGE\]: option --dialects: unknown dialect 'ec3'$/m,
  ],
  [
    'an unknown template',
    ['-t', 'drbd', 'web1'],
    /^error\[USAGE\]: option '-t, --disk-template <template>' argument 'drbd' is invalid/m,
  ],
  [
    'neither yes nor no',
    ['--communication=maybe', 'web1'],
    /^error\[USAGE\]: .*Invalid boolean value 'maybe'/m,
  ],
  [
    'a checksum that is none',
    ['--os-image-checksum', 'md5:00', 'web1'],
    /^error\[VALIDATION\]: --os-image-checksum: 'md5:00'.*\nhint: Write sha256:HEX or sha512:HEX$/m,
  ],
  [
    'a private SSH key',
    ['--ssh-key', '@KEY@', 'web1'],
    /^error\[VALIDATION\]: option --ssh-key: .* is a private key$/m,
  ],
  [
    'stdin for two values',
    ['-O', 'a=@-', '--user-data', '-', 'web1'],
    /^error\[USAGE\]: --user-data and --os-parameters a cannot both read stdin$/m,
  ],
  [
    'a package user without a password',
    ['--personalization-user', 'u', 'web1'],
    /^error\[USAGE\]: --personalization-user requires --personalization-password$/m,
  ],
  [
    '--degraded-fails without --wait-ready',
    ['--degraded-fails', 'web1'],
    /^error\[USAGE\]: --degraded-fails requires --wait-ready$/m,
  ],
  [
    '--wait-ready with --no-start',
    ['--wait-ready=5', '--no-start', 'web1'],
    /^error\[USAGE\]: --wait-ready and --no-start exclude each other$/m,
  ],
  ['no name', [], /^error\[USAGE\]: missing required argument 'name'$/m],
  ['two names', ['web1', 'web2'], /^error\[USAGE\]: add takes one name at a time$/m],
  [
    'a misspelled option',
    ['--os-imgae', '/i', 'web1'],
    /^error\[USAGE\]: unknown option '--os-imgae'\nhint: Did you mean --os-image\?$/m,
  ],
];
for (const [what, args, expected] of refusals) {
  test(`add refuses ${what} with exit status 2 and submits nothing`, async () => {
    await writeFile(join(lab.folder, 'key'), '-----BEGIN OPENSSH PRIVATE KEY-----\n');
    const result = await add(args.map((arg) => arg.replace('@KEY@', `${lab.folder}/key`)));
    assert.match(result.stderr, expected);
    assert.equal(result.status, 2);
    assert.equal(result.stdout, '');
    assert.equal(lab.daemon.submitted.length, 0);
  });
}

test('a misspelled secret option does not print its value', async () => {
  const result = await add([`--os-parameters-secrte=pw=${SECRET}`, 'web1']);
  assert.equal(result.status, 2);
  assert.match(result.stderr, /^error\[USAGE\]: unknown option '--os-parameters-secrte'$/m);
  assert.match(result.stderr, /^hint: Did you mean --os-parameters-secret\?$/m);
  assert.equal(result.stderr.includes(SECRET), false);
});

test('a file that is not text is refused by name, and its content is not shown', async () => {
  const result = await add(['--os-parameters-secret', `pw=@${lab.folder}/binary`, 'web1']);
  assert.match(
    result.stderr,
    /^error\[VALIDATION\]: option --os-parameters-secret pw: .*binary is not UTF-8 text$/m,
  );
  assert.equal(result.status, 2);
});

test('a file with a NUL character is refused for that, and its content is not shown', async () => {
  await writeFile(join(lab.folder, 'cut'), `${SECRET}\0tail`);
  const result = await add(['--os-parameters-secret', `pw=@${lab.folder}/cut`, 'web1']);
  assert.match(
    result.stderr,
    /^error\[VALIDATION\]: option --os-parameters-secret pw: .*cut contains a NUL character$/m,
  );
  assert.equal(result.stderr.includes(SECRET), false);
  assert.equal(result.status, 2);
});

test('a secret without its name is refused and not shown', async () => {
  for (const value of ['hunter2', 'no_hunter2', `@${lab.folder}/secret`]) {
    const result = await add(['--os-image', '/i', '--os-parameters-secret', value, 'web1']);
    assert.equal(result.status, 2, value);
    assert.equal(/hunter2|correct-horse/.test(result.stderr), false, result.stderr);
  }
  assert.equal(lab.daemon.submitted.length, 0);
});
