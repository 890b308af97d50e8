import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '#shared/secret/secret.ts';
import { refuseWrongPaths } from '../../../noded/netboot/place-templates.ts';
import {
  address,
  baseUrl,
  bootable,
  envOf,
  ipxe,
  mac,
  opened,
  opts,
  plan,
  publicly,
  refusal,
  rendered,
  repository,
  sha256,
  uuid,
  withRepositories,
} from './plan-fixture.ts';

test('a BootEnv without a kernel boots from the disk', () => {
  const { script, files, source, kernel } = plan({});
  assert.deepEqual([script, source, kernel], [`${mac}.ipxe`, null, null]);
  assert.deepEqual(
    files.map(({ path, contents }) => [path, contents]),
    [[`${mac}.ipxe`, '#!ipxe\nexit\n']],
  );
});

test('the built-in script names initrds on the line of the kernel', () => {
  const { files, source, kernel, initrds } = plan(bootable, {
    parameters: opts,
    archive: opened('d/linux', 'd/initrd.gz', 'more.cpio'),
  });
  assert.deepEqual(source, { kind: 'archive', isoFile: 'd.tar.gz', sha256 });
  assert.deepEqual([kernel, initrds], ['d/linux', ['d/initrd.gz', 'more.cpio']]);
  const tree = `${baseUrl}/machines/${uuid}/boot`;
  assert.equal(
    files[0]?.contents,
    [
      '#!ipxe',
      'set tries:int32 0',
      ':load',
      `kernel ${tree}/d/linux initrd=initrd0 initrd=initrd1 auto url=${baseUrl}/machines/${uuid}/seed quiet BOOTIF=01-\${netX/mac:hexhyp} || goto again`,
      `initrd --name initrd0 ${tree}/d/initrd.gz || goto again`,
      `initrd --name initrd1 ${tree}/more.cpio || goto again`,
      'boot || goto failed',
      ':again',
      'imgfree',
      'inc tries',
      'iseq ${tries} 10 && goto failed ||',
      'sleep 3',
      'goto load',
      ':failed',
      'exit',
      '',
    ].join('\n'),
  );
});

test('names of boot files with special characters are percent-encoded in the script', () => {
  const named = structuredClone(bootable);
  const { amd64 } = named.OS.SupportedArchitectures;
  Object.assign(amd64, { Kernel: 'my d/linux 6.1+b~1', Initrds: ['100%.gz', 'ä${x}&&'] });
  const archive = opened(amd64.Kernel, ...amd64.Initrds);
  const [script] = plan(named, { parameters: opts, archive }).files;
  const lines = script?.contents?.split('\n') ?? [];
  const wordOf = (start: string, at: number): string =>
    lines.find((line) => line.startsWith(start))?.split(' ')[at] ?? '';
  const urls = [
    wordOf('kernel ', 1),
    wordOf('initrd --name initrd0', 3),
    wordOf('initrd --name initrd1', 3),
  ];
  const tree = `${baseUrl}/machines/${uuid}/boot/`;
  assert.deepEqual(
    urls.map((url) => decodeURIComponent(url.slice(tree.length))),
    [amd64.Kernel, ...amd64.Initrds],
  );
  assert.equal(urls[0], `${tree}my%20d/linux%206.1+b~1`);
  assert.equal(urls[2], `${tree}%C3%A4%24%7Bx%7D%26%26`);
});

test('a script whose files do not load exits to the disk, and powers off during an installation', () => {
  const end = (Name: string): string | undefined =>
    plan(
      { ...bootable, Name },
      { parameters: opts, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') },
    ).files[0]?.contents?.split(':failed\n')[1];
  assert.equal(end('debian-12'), 'exit\n');
  assert.equal(end('debian-12-install'), 'poweroff || reboot\n');
});

test("the store's default-ipxe.tmpl overrides the built-in template", () => {
  const { files } = plan({}, { templates: new Map([['default-ipxe.tmpl', '#!mine']]) });
  assert.equal(files[0]?.contents, '#!mine');
});

test('an archive without a boot file is refused', () => {
  const error = refusal('BOOTENV_NO_SOURCE', () =>
    plan(bootable, { parameters: opts, archive: opened('d/linux', 'd/initrd.gz') }),
  );
  assert.match(error.message, /d\.tar\.gz has no more\.cpio/);
});

test('a BootEnv without an archive boots from the installSource of its system', () => {
  const { source } = plan(bootable, { parameters: withRepositories(repository) });
  assert.deepEqual(source, { kind: 'repository', url: repository.bootloc });
  const plain = { ...repository, bootloc: '' };
  assert.deepEqual(plan(bootable, { parameters: withRepositories(plain) }).source, {
    kind: 'repository',
    url: repository.url,
  });
});

test('a BootEnv without an archive and an allowed repository is refused with the remedy', () => {
  const upload = refusal('BOOTENV_NO_SOURCE', () => plan(bootable, { parameters: opts }));
  assert.match(upload.hint ?? '', /gnt-bootenv add-iso test/);
  const parameters = withRepositories(repository);
  const allow = refusal('BOOTENV_NO_SOURCE', () =>
    plan(bootable, { parameters, isAllowed: () => false }),
  );
  assert.match(allow.message, /not below an allowed package mirror/);
  for (const other of [{ os: ['debian-11'] }, { arch: 'arm64' }, { installSource: false }])
    refusal('BOOTENV_NO_SOURCE', () =>
      plan(bootable, { parameters: withRepositories({ ...repository, ...other }) }),
    );
});

test('repositories that break their rules are refused, with the place', () => {
  for (const other of [
    { os: ['a', 'b'] },
    { arch: 'any' },
    { url: 'http://m/$basearch' },
    { x: 1 },
  ]) {
    const parameters = withRepositories({ ...repository, ...other });
    const { message } = refusal('BOOTENV_INVALID', () => plan(bootable, { parameters }));
    assert.match(message, /'package-repositories' of web1\.example\.com: 0/);
  }
  const parameters = publicly({ 'package-repositories': 'no JSON' });
  refusal('BOOTENV_INVALID', () => rendered('{{.MachineRepos}}', { parameters }));
});

test('a Path outside of the instance’s paths is refused', () => {
  const paths = [
    '/etc/passwd',
    '../x',
    '{{.Machine.Path}}/../x',
    '{{.Machine.Path}}',
    '{{.Machine.Path}}/',
    '{{.Machine.Path}}//x',
    '{{.Machine.Path}}/boot',
    '{{.Machine.Path}}/boot/linux',
    '{{.Machine.Path}}x/y',
    '{{.Machine.Path}}/a b',
    '{{.Machine.Path}}/a%2e',
    '{{.Machine.Path}}/a?b',
    'machines/3f0c8c6e-0000-4000-8000-000000000002/x',
    'aa:00:00:12:34:57.ipxe',
    '169.254.10.21.ipxe',
    'other',
    '{{.Machine.Path}}/{{repeat 600 "a"}}',
  ];
  for (const Path of paths) {
    const bad = { Templates: [ipxe, { Name: 'bad', Path, Contents: 'x' }] };
    const { message } = refusal('BOOTENV_INVALID', () => plan(bad));
    assert.match(message, /'bad'/, Path);
    // A MAC address belongs to another machine, or to its script, which exists already.
    const isOfAnother = /^(?:machines\/3f0c|169)/.test(Path);
    if (isOfAnother) refuseWrongPaths(envOf(bad));
    else refusal('BOOTENV_INVALID', () => refuseWrongPaths(envOf(bad)));
  }
});

test('a Path that is wrong for every instance is refused at upload, and other Paths are not', () => {
  const twice = { Templates: [ipxe, { ...ipxe, Name: 'again' }] };
  const { message } = refusal('BOOTENV_INVALID', () => refuseWrongPaths(envOf(twice)));
  assert.match(message, /'ipxe' and 'again' have the same Path/);
  const paths = [
    'machines/{{.Machine.UUID}}/{{.Machine.ShortName}}-{{.Env.Name}}/x',
    '{{.Machine.Path}}/{{.Param "role"}}',
    '{{if .ParamExists "role"}}{{.Machine.Path}}/x{{else}}..{{end}}',
    '{{range .MachineRepos}}/{{.Tag}}{{end}}',
    '{{template "path.tmpl" .}}',
    'pxelinux.cfg/default',
    'default.ipxe',
  ];
  const Templates = paths.map((Path, at) => ({ Name: `t${at}`, Path, Contents: 'x' }));
  refuseWrongPaths(envOf({ Templates: [ipxe, ...Templates] }));
});

test('two templates with the same rendered Path are refused', () => {
  const twice = {
    Templates: [
      { ...ipxe, Path: `${mac}.ipxe` },
      { ...ipxe, Name: 'again' },
    ],
  };
  const { message } = refusal('BOOTENV_INVALID', () => plan(twice));
  assert.match(message, /'ipxe' and 'again'/);
});

test('a BootEnv without an iPXE script is refused, and a script at the address is accepted', () => {
  refusal('BOOTENV_INVALID', () => plan({ Templates: [] }));
  const { script } = plan({ Templates: [{ ...ipxe, Path: '{{.Machine.Address}}.ipxe' }] });
  assert.equal(script, `${address}.ipxe`);
});

test('files for TFTP are left out and listed', () => {
  const others = [
    'pxelinux.cfg/{{.Machine.HexAddress}}',
    'grub/x.cfg',
    '{{.Machine.HexAddress}}.conf',
    '{{.Env.PathFor "tftp" ""}}/EFI/BOOT/grub.cfg-{{.Machine.MacAddr "pxelinux"}}',
    '{{.Env.PathFor "tftp" "grub.cfg"}}',
  ];
  const Templates = others.map((Path, index) => ({ Name: `t${index}`, Path, ID: 'none.tmpl' }));
  const { files, leftOut } = plan({ Templates: [ipxe, ...Templates] });
  assert.deepEqual([files.length, leftOut.length], [1, 5]);
  assert.equal(
    plan({ Templates: [ipxe, { ...ipxe, Name: 'all', Path: 'default.ipxe' }] }).files.length,
    1,
  );
  assert.match(leftOut[0] ?? '', /'t0' at pxelinux\.cfg\/A9FE0A14: TFTP is not supported/);
});

test('a template that cannot be rendered is refused by name, line and column', () => {
  const texts: Readonly<Record<string, RegExp>> = {
    'a\n{{.Param "nosuch"}}': /template x:2:3: param 'nosuch' does not exist/,
    '{{template "nosuch.tmpl" .}}': /template x:1:3: the template "nosuch.tmpl" is not defined/,
    '{{nosuch}}': /template x:1:3: function 'nosuch' does not exist/,
    '{{.Task.Name}}': /template x:1:3: \.Task is not supported: BootEnvs have no tasks/,
    '{{.CurrentJob}}': /\.CurrentJob is not supported/,
    '{{.Machine.Secret}}': /there is no \.Secret/,
    '{{now}}': /'now' is refused/,
    '{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}': /nested more than/,
    '{{range until 99999}}{{range until 99999}}{{end}}{{end}}': /too many steps/,
    '{{.CallTemplate "nosuch" .}}': /"nosuch" is not defined/,
    '{{.Env.PathFor "nfs" "x"}}': /not by "nfs"/,
    '{{.Env.PathForArch "http" "x" "arm64"}}': /instances are amd64/,
    '{{.Machine.constructor}}': /there is no \.constructor/,
  };
  for (const [text, message] of Object.entries(texts)) {
    const error = refusal('BOOTENV_RENDER', () => rendered(text));
    assert.match(error.message, message);
    assert.equal(error.details['template'], 'x');
  }
  const missing = { Templates: [{ ...ipxe, ID: 'nosuch.tmpl' }] };
  assert.match(refusal('BOOTENV_RENDER', () => plan(missing)).message, /'nosuch\.tmpl'/);
});

test('a file of more than 1 MiB and files of more than 4 MiB are refused', () => {
  const mebibyte = '{{range until 1024}}{{repeat 1024 "x"}}{{end}}';
  assert.equal(Buffer.byteLength(String(rendered(mebibyte))), 1024 * 1024);
  refusal('BOOTENV_RENDER', () => rendered(`${mebibyte}x`));
  const Templates = [1, 2, 3, 4].map((each) => ({
    Name: `t${each}`,
    Path: `{{.Machine.Path}}/${each}`,
    Contents: mebibyte,
  }));
  const { message } = refusal('BOOTENV_RENDER', () => plan({ Templates: [ipxe, ...Templates] }));
  assert.match(message, /larger than 4194304/);
});

test('bootenv-customize and package-repositories must be public', () => {
  for (const name of ['bootenv-customize', 'package-repositories'])
    for (const [visibility, value] of [
      ['private', '{"test":{"hunter2":1}}'],
      ['secret', new Secret('hunter2')],
      ['secret', null],
    ] as const) {
      const error = refusal('BOOTENV_INVALID', () =>
        plan(bootable, { parameters: new Map([...opts, [name, { visibility, value }]]) }),
      );
      assert.match(error.message, new RegExp(`'${name}'.*must be public`));
      assert.ok(!`${error.message}${error.hint}`.includes('hunter2'));
    }
});

test('a Path below the Path of another file is refused', () => {
  for (const order of [
    ['seed', 'seed/x'],
    ['seed/x', 'seed'],
  ]) {
    const files = order.map((path) => ({
      ...{ Name: path, Path: `{{.Machine.Path}}/${path}`, Contents: path },
    }));
    const error = refusal('BOOTENV_INVALID', () => plan({ Templates: [ipxe, ...files] }));
    assert.match(error.message, /seed.*a file and a folder/);
  }
});

test('a Link serves another file of the plan, and other targets are refused', () => {
  const link = (Link: string): object => ({
    Templates: [ipxe, { Name: 'l', Path: '{{.Machine.Path}}/l', Link }],
  });
  const { files } = plan(link('{{.Machine.MacAddr}}.ipxe'));
  assert.equal(files[1]?.contents, files[0]?.contents);
  for (const bad of ['/etc/shadow', '../x', 'machines/x/y'])
    refusal('BOOTENV_INVALID', () => plan(link(bad)));
});
