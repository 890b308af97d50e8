import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { HookDocument } from '#shared/contract/hooks.ts';
import { hookPoint } from '#shared/contract/primitives.ts';
import { hookDocument, TempRoot } from './support/temp-root.ts';

const run = (root: TempRoot, step: string): Promise<string> =>
  root
    .open([hookDocument(`stages: {after-install-chroot: [${step.replace(/^- /, '')}]}`)])
    .run('after-install-chroot', root.reporter);

test("steps see Kairos' sentinel of a live system, and of a recovery in reinstallations only", async () => {
  const document = hookDocument(`stages:
  before-install:
    - {if: '[ -f /run/cos/live_mode ]', commands: [touch /srv/live]}
    - {if_files: {all: [/run/cos/recovery_mode]}, commands: [touch /srv/recovery]}
`);
  for (const points of [hookPoint.options, ['before-install'] as const]) {
    using root = new TempRoot();
    const book = root.open([document], {}, { points });
    await book.run('before-install', root.reporter);
    const isReinstall = points.includes('before-reset' as never);
    assert.ok(existsSync(join(root.path, 'srv/live')));
    assert.equal(existsSync(join(root.path, 'srv/recovery')), isReinstall);
  }
});

test("a step that creates Kairos' sentinel of a failure is an error", async () => {
  using root = new TempRoot();
  const book = root.open([
    hookDocument('stages: {before-install: [{commands: [touch /run/cos/fail_installation]}]}'),
  ]);
  await assert.rejects(book.run('before-install', root.reporter), {
    code: 'HOOK_FAILED',
    message: /fail_installation/,
  });
});

const UNJUDGED: Readonly<Record<string, readonly [step: string, message: RegExp]>> = {
  'no shell in the root': ["if: 'true'", /cannot evaluate the condition: \/bin\/sh exited with/],
  'no os-release in the root': ['only_os: debian', /cannot determine the operating system/],
  'two service managers': [
    'only_service_manager: systemd',
    /both systemd and openrc are installed/,
  ],
};
for (const [name, [condition, message]] of Object.entries(UNJUDGED)) {
  test(`a step whose condition cannot be evaluated is an error: ${name}`, async () => {
    using root = new TempRoot({ '/bin/systemctl': '', '/sbin/openrc': '' });
    if (name.startsWith('no shell')) rmSync(join(root.path, 'bin/sh'));
    await assert.rejects(run(root, `- {${condition}, commands: [touch /srv/x]}`), {
      code: 'HOOK_FAILED',
      message,
    });
  });
}

test('conditions are true by exit status 0, and a syntax error is an error', async () => {
  using root = new TempRoot({
    '/bin/openrc': '',
    '/etc/os-release': 'ID=debian\nPRETTY_NAME="Debian 12"\n',
  });
  const steps = [
    "{if: 'no-such-program', name: no}",
    "{if: 'exit 7', name: no}",
    "{if: '[ $# = 0 ] && exit 0', name: yes}",
    '{only_service_manager: OpenRC, name: yes}',
    '{only_service_manager: systemd, name: no}',
    "{node: '^web', name: yes}",
    "{node: '^db', name: no}",
    "{only_os: '(?i)^DEBIAN', name: yes}",
    "{only_os: '^DEBIAN', name: no}",
  ];
  const environment = async () => ({ PATH: '/bin', INSTANCE_NAME: 'web1.example.com' });
  const all = hookDocument(
    `stages: {after-install-chroot: [${steps.map((step) => step.replace('}', ', commands: [echo x >>/srv/log]}')).join(',')}]}`,
  );
  const said = await root.open([all], { environment }).run('after-install-chroot', root.reporter);
  assert.equal(said, '4 done, 5 skipped');
  assert.ok(root.lines.every((line) => line.includes("'no'") === line.includes('skipped')));
  await assert.rejects(run(root, "- {if: '[ -f x ] && ('}"), { message: /syntax error/ });
});

test("a layout of the image's disk before the image stage is refused", () => {
  using root = new TempRoot();
  const imageDisk = '/dev/disk/by-id/virtio-disk0';
  const layout = (stage: string, path: string): HookDocument[] => [
    hookDocument(`stages: {${stage}: [{layout: {device: {path: ${path}}}}]}`),
  ];
  for (const stage of ['before-install', 'image.before', 'kairos-install.pre.after'])
    assert.throws(() => root.open(layout(stage, imageDisk), {}, { imageDisk }), {
      code: 'HOOK_FAILED',
      hint: 'Move it to image.after.',
    });
  root.open(layout('image.after', imageDisk), {}, { imageDisk });
  root.open(layout('before-install', '/dev/disk/by-id/virtio-disk1'), {}, { imageDisk });
  root.open(layout('before-install', imageDisk));
});
