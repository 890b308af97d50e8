import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hookDocument, TempRoot } from './support/temp-root.ts';

/** Runs the steps of one stage, given in flow style, in the instance's root. */
const run = (root: TempRoot, steps: string, environment: Record<string, string> = {}) =>
  root
    .open([hookDocument(`stages: {after-install-chroot: [${steps}]}`)], {
      environment: async () => ({ PATH: '/bin', ...environment }),
    })
    .run('after-install-chroot', root.reporter);
const read = (root: TempRoot, path: string): string => readFileSync(join(root.path, path), 'utf8');

test('entities replace the entry of their name or are appended, group members add up, and entries are deleted by name', async () => {
  using root = new TempRoot({
    '/etc/passwd': 'root:x:0:0::/root:/bin/sh\nold:x:5:5::/:/bin/sh\n',
    '/etc/group': 'adm:x:4:syslog\n',
    '/etc/shadow': 'root:*:1::::::\n',
  });
  await run(
    root,
    `{ensure_entities: [
      {entity: "kind: user\\nusername: old\\nuid: 6\\ngid: 7\\nshell: /bin/false"},
      {entity: "{kind: user, username: web, password: x, uid: 0033, gid: 33, info: Web, homedir: /srv}"},
      {entity: "{kind: group, group_name: adm, gid: 4, users: 'web,syslog'}"},
      {entity: "{kind: shadow, username: web, password: '!', last_changed: 9}"},
      {path: /srv/group, entity: "{kind: group, group_name: a, gid: 1}"}]},
    {delete_entities: [{entity: "{kind: shadow, username: root}"}]}`,
  );
  assert.equal(
    read(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nold:x:6:7:::/bin/false\nweb:x:0033:33:Web:/srv:\n',
  );
  assert.equal(read(root, 'etc/group'), 'adm:x:4:syslog,web\n');
  assert.equal(read(root, 'etc/shadow'), 'web:!:9::::::\n');
  assert.equal(read(root, 'srv/group'), 'a:x:1:\n');
});

test('modules and time servers are written once, and existing settings stay', async () => {
  using root = new TempRoot({
    '/etc/systemd/timesyncd.conf.d/10-yip.conf': '[Time]\nNTP=old\nPollIntervalMinSec=32\n',
  });
  const step = '{modules: [kvm_intel nested=1, nbd], timesyncd: {NTP: "a b", FallbackNTP: }}';
  await run(root, `${step}, ${step}`);
  assert.equal(read(root, 'etc/modules-load.d/gnt-hooks.conf'), 'kvm_intel\nnbd\n');
  assert.equal(read(root, 'etc/modprobe.d/gnt-hooks.conf'), 'options kvm_intel nested=1\n');
  assert.equal(
    read(root, 'etc/systemd/timesyncd.conf.d/10-yip.conf'),
    '[Time]\nPollIntervalMinSec=32\nNTP=a b\nFallbackNTP=\n',
  );
});

test('systemd-firstboot of the instance gets one argument per setting, and a systemctl start is only logged', async () => {
  using root = new TempRoot({
    '/bin/systemd-firstboot': '#!/bin/sh\nfor word; do echo "$word"; done >/srv/said\n',
    '/bin/systemctl': '#!/bin/sh\ntouch /srv/never\n',
  });
  await run(
    root,
    '{systemd_firstboot: {keymap: "us; touch /srv/never", Force: true}, systemctl: {start: [nginx]}}',
  );
  assert.equal(read(root, 'srv/said'), '--force\n--keymap=us; touch /srv/never\n');
  assert.ok(root.lines.some((line) => line.startsWith('systemctl start nginx: ')));
  assert.ok(!existsSync(join(root.path, 'srv/never')));
});

test('templates are expanded for the instance, and other braces stay and are reported before the step', async () => {
  using root = new TempRoot({
    '/etc/os-release': 'ID=debian\nVERSION_ID="12"\n',
    '/etc/hosts': '',
  });
  const document = hookDocument(`stages:
  after-install-chroot:
    - if: '[ {{ .Values.os.vendor }} = debian ]'
      hostname: 'n-{{ .Random }}'
      environment: {OS: '{{.Values.os.vendor}} {{ .Values.os.version }}', FORMAT: '{{.Names}}'}
      commands: ['echo {{ "{{" }} {{ .Values.os.architecture }} {{ .Values.node.hostname }} >/srv/said']
      files: [{path: /srv/file, content: '{{ .Values.Random }}'}]
`);
  const book = root.open([document], {
    environment: async () => ({ PATH: '/bin', INSTANCE_NAME: 'web1.example.com' }),
  });
  assert.deepEqual(book.remarks, [
    'instance/test.yaml: step 1, environment 2: {{ does not name .Values and is kept as text',
  ]);
  await book.run('after-install-chroot', root.reporter);
  assert.equal(read(root, 'srv/said'), '{{ amd64 web1.example.com\n');
  assert.match(read(root, 'etc/hostname'), /^n-[a-z0-9]{32}\n$/);
  assert.match(read(root, 'srv/file'), /^[a-z0-9]{32}$/);
  assert.match(read(root, 'etc/environment'), /^OS="debian 12"$/m);
  assert.match(read(root, 'etc/environment'), /^FORMAT="\{\{.Names\}\}"$/m);
});

test("a layout's script runs in the root of the step, and a failing script or missing device is an error", async () => {
  using root = new TempRoot({ '/bin/pick': '#!/bin/sh\necho choosing; echo "/srv/$1"\n' });
  const layout = (program: string): Promise<string> =>
    root
      .open([
        hookDocument(
          `stages: {before-install: [{layout: {device: {path: "script://${program}"}}}]}`,
        ),
      ])
      .run('before-install', root.reporter);
  // The printed path is looked up and is not a device.
  await assert.rejects(layout('pick disk'), { message: /layout: the device does not exist$/ });
  await assert.rejects(layout('false'), { message: /layout: the script exited with status 127/ });
});

test('a template that renders an invalid host name fails the step, and nothing is written', async () => {
  using root = new TempRoot({
    '/etc/os-release': 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n',
  });
  await assert.rejects(run(root, '{hostname: "{{ .Values.os.name }}"}'), {
    message: /hostname: the result of the template is not a host name$/,
  });
  assert.ok(!existsSync(join(root.path, 'etc/hostname')));
});
