import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { Secret } from '#shared/secret/secret.ts';
import {
  bootEnvDocument,
  bootParam,
  foldBootEnv,
  type BootEnv,
} from '#shared/contract/boot-env.ts';
import type { BootParameter, BootPlanInput } from '../../../noded/netboot/boot-plan.ts';
import {
  address,
  baseUrl,
  bootable,
  mac,
  opened,
  plan,
  publicly,
  rendered,
  repository,
  sha256,
  uuid,
  withRepositories,
  withText,
} from './plan-fixture.ts';

function loadExample(): { readonly bootEnv: BootEnv } & Pick<
  BootPlanInput,
  'templates' | 'schemas'
> {
  const folder = new URL('../../../fixtures/bootenvs/debian-12/', import.meta.url);
  const read = (path: string): string => readFileSync(new URL(path, folder), 'utf8');
  const list = (kind: string): readonly string[] => readdirSync(new URL(kind, folder));
  const params = list('params/').map((name) => bootParam.parse(parse(read(`params/${name}`))));
  return {
    bootEnv: foldBootEnv(bootEnvDocument.parse(parse(read('bootenvs/debian-12-install.yaml'))))
      .bootEnv,
    templates: new Map(
      list('templates/').map((name) => [basename(name), read(`templates/${name}`)]),
    ),
    schemas: new Map(params.map((param) => [param.Name, param])),
  };
}

test('machines, systems and repositories have the member names of dr-provision', () => {
  const updates = { ...repository, tag: 'u', installSource: false, arch: 'any' };
  const security = {
    ...updates,
    tag: 's',
    url: 'http://sec.example/debian-security/',
    securitySource: true,
    distribution: 'bookworm-security',
  };
  const yum = {
    tag: 'c',
    os: ['centos-8'],
    arch: 'x86_64',
    url: 'http://c.example/centos',
    distribution: '8',
    components: ['AppStream'],
  };
  const parameters = withRepositories(repository, updates, security, yum);
  const bootEnv = { OS: { ...bootable.OS, Family: 'debian', Version: '12.5' } };
  const make = (text: string): unknown =>
    rendered(text, { parameters, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') }, bootEnv);
  const texts: Readonly<Record<string, string>> = {
    '{{.Machine.ShortName}} {{.Machine.HexAddress}} {{.Machine.UUID}}': `web1 A9FE0A14 ${uuid}`,
    '{{.Machine.OS}}': 'debian-12',
    '{{.Machine.MacAddr "pxelinux"}}': '01-aa-00-00-12-34-56',
    '{{.Env.OS.FamilyName}} {{.Env.OS.FamilyType}} {{.Env.OS.FamilyVersion}}': 'debian debian 12.5',
    '{{.Env.OS.VersionEq "12"}}{{.Env.OS.VersionEq "12.5"}}{{.Env.OS.VersionEq "12.5.1"}}{{.Env.OS.VersionEq "1"}}':
      'truetruefalsefalse',
    '{{.Env.JoinInitrds "http"}}': `${baseUrl}/machines/${uuid}/boot/d/initrd.gz,${baseUrl}/machines/${uuid}/boot/more.cpio`,
    '{{.Env.PathFor "tftp" "/d/linux"}}': `machines/${uuid}/boot/d/linux`,
    '{{.Env.InstallUrl}}': `${baseUrl}/machines/${uuid}/boot`,
    '{{.ParseURL "host" .ProvisionerURL}} {{.ProvisionerAddress}}':
      '169.254.169.254 169.254.169.254',
    '{{(index .Env.OS.SupportedArchitectures "amd64").Kernel}}': 'd/linux',
    '{{range .MachineRepos}}{{.Tag}} {{.Lines}}{{end}}':
      'r deb http://deb.example/debian bookworm main contrib\nu deb http://deb.example/debian bookworm main contrib\ns deb http://sec.example/debian-security/ bookworm-security main contrib\n',
    '{{range .InstallRepos}}{{.Install}}\n{{end}}':
      'd-i mirror/protocol string http\nd-i mirror/http/hostname string deb.example\nd-i mirror/http/directory string /debian\nd-i apt-setup/security_host string sec.example\nd-i apt-setup/security_path string /debian-security\n',
    '{{range .Repos "c"}}{{.RepoType}} {{.UrlFor "AppStream"}} {{.JoinedComponents}} {{.R.Machine.Name}}{{end}}':
      'yum http://c.example/centos/8/AppStream/$basearch/os AppStream web1.example.com',
  };
  for (const [text, want] of Object.entries(texts)) assert.equal(make(text), want);
});

test('the example for Debian renders installer options for a network without a router', () => {
  const archive: BootPlanInput['archive'] = () => ({ sha256, has: () => true });
  const { files } = plan({}, { ...loadExample(), archive });
  assert.deepEqual(
    files.map(({ path }) => path),
    [`${address}.ipxe`, `${mac}.ipxe`, `machines/${uuid}/preseed.cfg`],
  );
  const [, script, preseed] = files.map(({ contents }) => contents ?? '');
  assert.match(
    script ?? '',
    /netcfg\/no_default_route=true netcfg\/get_nameservers=169\.254\.169\.254/,
  );
  assert.match(script ?? '', new RegExp(`preseed/url=${baseUrl}/machines/${uuid}/preseed.cfg`));
  assert.match(preseed ?? '', /d-i partman-auto\/disk string \/dev\/vda\n/);
  assert.match(preseed ?? '', /late_command string wget .*"status":"success"/);
  const parameters = publicly({ 'debian-preseed': 'debian-12-rehearsal.tmpl' });
  const rehearsal = plan({}, { ...loadExample(), archive, parameters }).files[2]?.contents ?? '';
  assert.match(rehearsal, /"line":"rehearsal of web1\.example\.com"/);
  assert.ok(!rehearsal.includes('partman'), rehearsal);
});

test('install repositories have the URL of a package mirror or archive, where one exists', () => {
  const security = { ...repository, tag: 's', url: 'http://sec.example/debian-security' };
  const updates = { ...security, installSource: false, securitySource: true };
  const parameters = withRepositories(repository, updates);
  const text =
    '{{range .InstallRepos}}{{.Tag}} {{.URL}}|{{end}}{{range .MachineRepos}}{{.URL}} {{end}}';
  const mirrorUrl = (url: string): string | null =>
    url.startsWith('http://deb.example/') ? 'http://169.254.169.254/m/debian' : null;
  const make = (Name: string, parts: Partial<BootPlanInput> = {}): unknown =>
    rendered(text, { parameters, mirrorUrl, ...parts }, { ...bootable, Name });
  const own = 'http://deb.example/debian http://sec.example/debian-security ';
  assert.equal(
    make('x-install'),
    `r http://169.254.169.254/m/debian|s http://sec.example/debian-security|${own}`,
  );
  // Mirrors are closed in normal runs.
  assert.match(String(make('live')), /^r http:\/\/deb\.example\/debian\|/);
  const local = `${baseUrl}/machines/${uuid}/boot`;
  const loaded = ['d/linux', 'd/initrd.gz', 'more.cpio'];
  const whole = opened(...loaded, 'dists/stable/Release');
  assert.equal(
    make('x-install', { archive: whole }),
    `x-install ${local}|s http://sec.example/debian-security|${own}`,
  );
  let asked = 0;
  const counting: BootPlanInput['archive'] = (isoFile, digest) => {
    const content = whole(isoFile, digest);
    return content && { ...content, has: (path) => ((asked += 1), content.has(path)) };
  };
  const often = '{{range until 99}}{{range $.InstallRepos}}{{.URL}}{{end}}{{end}}';
  rendered(often, { parameters, archive: counting }, { ...bootable, Name: 'x-install' });
  assert.ok(asked < 9, `${asked} look-ups for one plan`);
  // An installer without packages needs a mirror.
  assert.match(String(make('x-install', { archive: opened(...loaded) })), /^r http:\/\/169/);
});

test('members of the API of dr-provision have a constant value, which the plan names', () => {
  const text = [
    '{{.ApiURL}} {{.ApiHostURL}} {{.SecureProvisionerURL}} {{.GenerateToken}}',
    '{{.GenerateProfileToken "p" 0}} {{.Info.FilePort}} {{.Info.Version}}',
  ].join('|');
  const { files, constants } = plan({
    Templates: [{ Name: 'i', Path: `${mac}.ipxe`, Contents: text }],
  });
  assert.equal(files[0]?.contents, `${baseUrl} ${baseUrl} ${baseUrl} no-token|no-token 80 `);
  assert.deepEqual(constants, [
    ...['.ApiHostURL', '.ApiURL', '.GenerateProfileToken', '.GenerateToken', '.Info'],
    '.SecureProvisionerURL',
  ]);
  assert.deepEqual(plan({}).constants, []);
});

test('a machine has the fields of dr-provision, and its public parameters only', () => {
  const parameters = new Map<string, BootParameter>([
    ...publicly({ list: '[1]', secure: 's3' }),
    ['private', { visibility: 'private', value: 'p' }],
    ['secret', { visibility: 'secret', value: new Secret('s') }],
    ['lost', { visibility: 'secret', value: null }],
  ]);
  const schemas = new Map(
    [
      { Name: 'list', Schema: { type: 'array' } },
      { Name: 'secure', Secure: true },
    ].map((param) => [param.Name, bootParam.parse(param)]),
  );
  const machine = { name: 'web1.example.com', uuid, mac, address, profiles: ['web', 'db'] };
  const layers = [{ values: publicly({ shared: 'x' }) }, { values: parameters }];
  const make = (text: string): unknown => rendered(text, { parameters, schemas, machine, layers });
  assert.equal(
    make('{{index .Machine.HardwareAddrs 0}} {{join "," .Machine.Profiles}}'),
    `${mac} web,db`,
  );
  assert.equal(
    make('{{.Machine.Params}} {{.Machine.Params.list}} {{len .Machine.Meta}}'),
    'map[list:[1]] [1] 0',
  );
  const shown: unknown = JSON.parse(String(make('{{toJson .Machine}}')));
  assert.deepEqual(shown, {
    ...{ Address: address, Arch: 'amd64', BootEnv: 'test', Context: '', Description: '' },
    ...{ HardwareAddrs: [mac], Locked: false, Meta: {}, Name: 'web1.example.com' },
    ...{ OS: 'debian-12', Params: { list: [1] }, Pool: 'default', Profiles: ['web', 'db'] },
    ...{ Runnable: true, Stage: 'none', Tasks: [], Uuid: uuid, Workflow: '' },
  });
  const { files } = plan(withText('{{toJson .Machine}}{{toJson .Env}}{{toJson .Env.OS}}'), {
    ...{ parameters, schemas, machine, layers },
  });
  assert.equal(files[1]?.isSecretBearing, false, 'no value that is not public is in it');
});

test('texts, values and composed params can be expanded as templates', () => {
  const low = publicly({ m: '{"a":"{{.Machine.ShortName}}"}' });
  const high = publicly({ m: '{"b":["{{.Machine.Arch}}"]}' });
  const schemas = new Map([['m', bootParam.parse({ Name: 'm', Schema: { type: 'object' } })]]);
  const parts = { schemas, parameters: high, layers: [{ values: low }, { values: high }] };
  const texts: Readonly<Record<string, string>> = {
    '{{toJson (.ParamComposeExpand "m")}}': '{"a":"web1","b":["amd64"]}',
    '{{toJson (.ParamExpand "m")}}': '{"b":["amd64"]}',
    '{{index (.ComposeParam "m") "a"}}': '{{.Machine.ShortName}}',
    '{{.StringExpand "{{.Env.Name}}-x"}}': 'test-x',
    '{{toJson (.ObjectExpand (list "{{.Env.Name}}" 1 (dict "k" "{{.Machine.Arch}}")))}}':
      '["test",1,{"k":"amd64"}]',
  };
  for (const [text, want] of Object.entries(texts)) assert.equal(rendered(text, parts), want);
});
