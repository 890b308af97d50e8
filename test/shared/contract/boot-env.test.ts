import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bootEnv,
  bootEnvCustomize,
  bootEnvDocument,
  bootParam,
  bootTemplate,
  foldBootEnv,
  packageRepositories,
  type BootTemplate,
} from '#shared/contract/boot-env.ts';

const document = {
  Name: 'debian-12-install',
  OS: {
    Name: 'debian-12',
    SupportedArchitectures: { amd64: { Kernel: 'linux', Initrds: ['initrd.gz'] } },
  },
  Templates: [{ Name: 'ipxe', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe', ID: 'default-ipxe.tmpl' }],
};
const fold = (value: unknown) => foldBootEnv(bootEnvDocument.parse(value));
const amd64 = (value: unknown) => fold(value).bootEnv.OS.SupportedArchitectures.amd64;

test('keeps what is amd64, each fact in one place, and reads its own result again', () => {
  const { bootEnv: kept, leftOut } = fold(document);
  assert.deepEqual(leftOut, []);
  assert.deepEqual(kept.OS.SupportedArchitectures.amd64, {
    IsoFile: '',
    Sha256: '',
    IsoUrl: '',
    Kernel: 'linux',
    Initrds: ['initrd.gz'],
    BootParams: '',
  });
  assert.deepEqual(bootEnv.parse(kept), kept);
  assert.deepEqual(fold(kept).bootEnv, kept);
});

test('tells that the type of an OS means nothing here', () => {
  const { leftOut } = fold({ ...document, OS: { ...document.OS, type: 'os' } });
  assert.deepEqual(leftOut, ["the field 'type' of OS, which belongs in Meta"]);
});

test("takes an older dr-provision's fields for amd64's, where amd64 has none", () => {
  const digest = 'A'.repeat(64);
  const legacy = {
    ...document,
    OS: {
      Name: 'debian-9',
      IsoFile: 'd.iso',
      IsoSha256: digest,
      IsoUrl: 'https://d.example/d.iso',
    },
    Kernel: 'linux',
    Initrds: ['initrd.gz'],
    BootParams: 'quiet',
    RequiredParams: null,
  };
  assert.deepEqual(amd64(legacy), {
    IsoFile: 'd.iso',
    Sha256: digest.toLowerCase(),
    IsoUrl: 'https://d.example/d.iso',
    Kernel: 'linux',
    Initrds: ['initrd.gz'],
    BootParams: 'quiet',
  });
  const both = {
    ...legacy,
    OS: {
      ...legacy.OS,
      SupportedArchitectures: { x86_64: { IsoFile: 'n.iso', Kernel: 'vmlinuz' } },
    },
  };
  const { IsoFile, Sha256, Kernel, Initrds } = amd64(both);
  assert.deepEqual(
    { IsoFile, Sha256, Kernel, Initrds },
    {
      IsoFile: 'n.iso',
      Sha256: '',
      Kernel: 'vmlinuz',
      Initrds: ['initrd.gz'],
    },
  );
});

test('tells what would do something elsewhere, and says nothing of a status', () => {
  const { leftOut } = fold({
    ...document,
    OnlyUnknown: true,
    Loaders: { '386-pcbios': 'lpxelinux.0', 'amd64-uefi': 'EFI/boot.efi' },
    OS: { ...document.OS, SupportedArchitectures: { amd64: { Loader: 'x.efi' }, arm64: {} } },
    Available: true,
    Errors: [],
    Validated: true,
    ReadOnly: true,
  });
  assert.equal(leftOut.length, 4);
  for (const part of ['arm64', '386-pcbios', 'x.efi', 'OnlyUnknown'])
    assert.ok(
      leftOut.some((line) => line.includes(part)),
      part,
    );
});

test('keeps what it left out, so much of it that one can read it, and no more', () => {
  const { bootEnv: kept } = fold({ ...document, OnlyUnknown: true });
  assert.match(String(kept.LeftOut), /^OnlyUnknown: /);
  // The shown document can be created again.
  assert.deepEqual(fold(kept).leftOut, []);
  assert.ok(!('LeftOut' in fold(document).bootEnv));
  const names = Array.from({ length: 500 }, (_, index) => `arch${index}`);
  const Loaders = Object.fromEntries(names.map((name) => [name, 'loader']));
  const SupportedArchitectures = Object.fromEntries(names.map((name) => [name, {}]));
  const large = fold({ ...document, Loaders, OS: { ...document.OS, SupportedArchitectures } });
  assert.equal(large.leftOut.length, 501);
  assert.ok(bootEnv.safeParse(large.bootEnv).success);
});

test('refuses what it does not know, and what no path may be', () => {
  const bad: readonly object[] = [
    { Kernels: 'linux' },
    { Name: '../etc' },
    { Kernel: '/linux' },
    { Kernel: 'a/../linux' },
    { Initrds: ['a//b'] },
    { Loaders: { 'amd64-uefi': '../x' } },
    { Templates: [{ ...document.Templates[0], Contents: 'both' }] },
    { Templates: [{ Name: 'none', Path: 'x' }] },
    { Templates: [document.Templates[0], document.Templates[0]] },
    { RequiredParams: ['a b'] },
    { OS: { Name: 'x', IsoFile: '../x.iso' } },
    { OS: { Name: 'x', IsoUrl: 'file:///etc/passwd' } },
  ];
  for (const part of bad)
    assert.ok(!bootEnvDocument.safeParse({ ...document, ...part }).success, JSON.stringify(part));
});

test('an installSource is of one os and one arch, without wildcards', () => {
  const good = { tag: 'a', os: ['d-12'], arch: 'amd64', url: 'http://m/d', installSource: true };
  const accepts = (part: object): boolean =>
    packageRepositories.safeParse([{ ...good, ...part }]).success;
  assert.ok(accepts({}));
  for (const part of [
    { os: ['a', 'b'] },
    { arch: 'any' },
    { url: 'http://m/$basearch' },
    { bootloc: 'http://m/$releasever' },
    { url: 'ftp://m/d' },
    { url: 'http://user:pw@m/d' },
  ])
    assert.ok(!accepts(part), JSON.stringify(part));
  assert.ok(accepts({ installSource: false, os: ['a', 'b'], arch: 'any', url: 'http://m/$x' }));
});

test('reads templates, params and customizations', () => {
  const template: BootTemplate = bootTemplate.parse({ ID: 'x.tmpl', Contents: 'y' });
  assert.equal(template.Contents, 'y');
  assert.deepEqual(bootParam.parse({ Name: 'a/b' }).Schema, {});
  assert.ok(!bootParam.safeParse({ Name: 'a', Schema: { default: 'x'.repeat(200_000) } }).success);
  const custom = bootEnvCustomize.parse({ 'debian-12-install': { OS: { Name: 'mine' } } });
  assert.equal(custom['debian-12-install']?.OS.Name, 'mine');
});
