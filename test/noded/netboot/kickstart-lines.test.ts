import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kickstartLines } from '../../../noded/netboot/kickstart-lines.ts';
import { baseUrl, plan, publicly, refusal, rendered, withText } from './plan-fixture.ts';
import type { BootParameter, BootPlanInput } from '../../../noded/netboot/boot-plan.ts';

const source = (name: string) => ({
  ...{ tag: 'r', os: [name], arch: 'x86_64', url: 'http://m.example/os', installSource: true },
});
const extra = (name: string) => ({ tag: 'e', os: [name], url: 'http://m.example/extra' });
const INSTALL = '{{range .MachineRepos}}{{.Install}}\n{{end}}';

function linesOf(
  OS: { readonly Name: string; readonly Version?: string },
  values: Readonly<Record<string, string>> = {},
  parts: Partial<BootPlanInput> = {},
): unknown {
  const repositories = JSON.stringify([source(OS.Name), extra(OS.Name)]);
  const parameters = publicly({ 'package-repositories': repositories, ...values });
  return rendered(INSTALL, { parameters, ...parts }, { OS });
}

test('the install command is rendered for releases that have it, and for no later release', () => {
  const url = 'url --url=http://m.example/os\n';
  const repo = 'repo --name="e" --baseurl=http://m.example/extra\n';
  for (const Name of ['centos-6', 'rhel-server-7-dvd', 'centos-7', 'rocky-8', 'fedora-33'])
    assert.equal(linesOf({ Name }), `install\n${url}${repo}`, Name);
  for (const Name of [
    ...['centos-stream', 'centos-stream-9', 'rocky-9', 'rhel-10', 'almalinux-10', 'ol-9'],
    ...['fedora-34', 'fedora-41', 'rhel-9.4'],
  ])
    assert.equal(linesOf({ Name }), `${url}${repo}`, Name);
  assert.equal(linesOf({ Name: 'redhat', Version: '7.9' }), `install\n${url}${repo}`);
  assert.equal(linesOf({ Name: 'redhat-7', Version: '9' }), `${url}${repo}`, 'Version counts more');
});

test('the first proxy is rendered for repositories outside of the channel', () => {
  const proxies = { 'proxy-servers': '["http://proxy.example:3128","http://other"]' };
  const schemas: BootPlanInput['schemas'] = new Map([
    [
      'proxy-servers',
      {
        ...{ Name: 'proxy-servers', Secure: false, Schema: { type: 'array' } },
        ...{ Description: '', Documentation: '', Meta: {} },
      },
    ],
  ]);
  const option = ' --proxy="http://proxy.example:3128"';
  const made = linesOf({ Name: 'rocky-9' }, proxies, { schemas });
  assert.equal(
    made,
    `url --url=http://m.example/os${option}\nrepo --name="e" --baseurl=http://m.example/extra${option}\n`,
  );
  assert.doesNotMatch(String(linesOf({ Name: 'centos-5' }, proxies, { schemas })), /--proxy/);
  const bad = { 'proxy-servers': '["http://x\\" --cost=1"]' };
  const error = refusal('BOOTENV_RENDER', () => linesOf({ Name: 'rocky-9' }, bad, { schemas }));
  assert.match(error.message, /'proxy-servers' is not a URL/);
  for (const none of ['[]', '[""]'])
    assert.doesNotMatch(
      String(linesOf({ Name: 'rocky-9' }, { 'proxy-servers': none }, { schemas })),
      /--proxy/,
    );
  const repositories = JSON.stringify([source('rocky-9'), extra('rocky-9')]);
  const parameters = new Map<string, BootParameter>([
    ...publicly({ 'package-repositories': repositories }),
    ['proxy-servers', { visibility: 'private', value: '["http://u:p@proxy.example"]' }],
  ]);
  const bootEnv = { OS: { Name: 'rocky-9' }, ...withText(INSTALL) };
  const { files } = plan(bootEnv, { parameters, schemas });
  assert.equal(files[1]?.isSecretBearing, true, 'a private proxy makes the file a secret');
  const byChannel = rendered(
    '{{range .InstallRepos}}{{.Install}}{{end}}',
    { parameters, schemas, mirrorUrl: () => `${baseUrl}/../mirror/os` },
    {
      Name: 'x-install',
      OS: { Name: 'rocky-9', SupportedArchitectures: { amd64: { Kernel: 'k' } } },
    },
  );
  assert.equal(byChannel, `url --url=${baseUrl}/../mirror/os`, 'no proxy reaches the channel');
});

test('a release without a version is treated as the newest', () => {
  const lines = kickstartLines([{ baseUrl: 'http://m' }], { name: 'x', version: '' }, 'http://p');
  assert.equal(lines, 'url --url=http://m --proxy="http://p"');
});

test('a file of yum compares no signatures, since a repository names no key', () => {
  const repositories = [
    { ...extra('rocky-9'), tag: 'c', distribution: '9', components: ['AppStream', 'BaseOS'] },
  ];
  const parameters = publicly({ 'package-repositories': JSON.stringify(repositories) });
  const made = rendered(
    '{{range .MachineRepos}}{{.Lines}}{{.Target}}{{end}}',
    { parameters },
    {
      OS: { Name: 'rocky-9' },
    },
  );
  const part = (name: string): string =>
    `[c-${name}]\nname=c-${name}\nbaseurl=http://m.example/extra/9/${name}/$basearch\nenabled=1\ngpgcheck=0\n`;
  assert.equal(made, `${part('AppStream')}\n${part('BaseOS')}rocky-9`);
});

test('a repository without arch has amd64 when it installs, and any otherwise', () => {
  const { arch, ...without } = source('rocky-9');
  assert.equal(arch, 'x86_64');
  const parameters = publicly({
    'package-repositories': JSON.stringify([without, extra('rocky-9')]),
  });
  const make = (text: string): unknown =>
    rendered(text, { parameters }, { OS: { Name: 'rocky-9' } });
  assert.equal(make('{{range .MachineRepos}}{{.Arch}} {{end}}'), 'amd64 any ');
});

test('bootenv-customize changes the family, codename and version of the system', () => {
  const custom = { test: { OS: { Family: 'debian', Codename: 'trixie', Version: '13' } } };
  const parameters = publicly({ 'bootenv-customize': JSON.stringify(custom) });
  const text = '{{.Env.OS.Name}} {{.Env.OS.Family}} {{.Env.OS.Codename}} {{.Env.OS.Version}}';
  assert.equal(rendered(text, { parameters }), 'debian-12 debian trixie 13');
});
