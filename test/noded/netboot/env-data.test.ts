import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  baseUrl,
  bootable,
  ipxe,
  opened,
  opts,
  plan,
  refusal,
  rendered,
  uuid,
} from './plan-fixture.ts';

/** A script like those of dr-provision: initrds by URL, without names. */
const PUBLISHED = [
  '#!ipxe',
  'kernel {{.Env.PathFor "http" .Env.Kernel}} {{.BootParams}}',
  '{{range .Env.Initrds}}initrd {{$.Env.PathFor "http" .}}',
  '{{end}}boot',
].join('\n');

test('BootParams in an iPXE script names the initrds', () => {
  const templates = new Map([['default-ipxe.tmpl', PUBLISHED]]);
  const params = { Name: 'p', Path: '{{.Machine.Path}}/p', Contents: '{{.BootParams}}' };
  const { files } = plan(
    { ...bootable, Templates: [ipxe, params] },
    { templates, parameters: opts, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') },
  );
  const [script, other] = files.map(({ contents }) => contents);
  const tree = `${baseUrl}/machines/${uuid}/boot`;
  const words = `auto url=${baseUrl}/machines/${uuid}/seed quiet`;
  assert.equal(
    script?.split('\n')[1],
    `kernel ${tree}/d/linux initrd=initrd.gz initrd=more.cpio ${words}`,
  );
  assert.match(script ?? '', /^initrd .*\/d\/initrd\.gz$/m);
  assert.equal(other, words, 'a pxelinux line, which has initrds of its own');
});

test('every member for boot parameters renders them with the names of the initrds', () => {
  const asked = [
    '{{.BootParams}}',
    '{{.BootParamsFor "amd64"}}',
    '{{.Env.BootParams}}',
    '{{.Env.BootParamsFor "x86_64"}}',
  ];
  const made = asked.map((text) => {
    const script = { ...ipxe, ID: '', Contents: text };
    return plan(
      { ...bootable, Templates: [script] },
      { parameters: opts, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') },
    ).files[0]?.contents;
  });
  assert.equal(new Set(made).size, 1, JSON.stringify(made));
  assert.match(made[0] ?? '', /^initrd=initrd\.gz initrd=more\.cpio auto url=.*\/seed quiet$/);
  refusal('BOOTENV_RENDER', () => rendered('{{.BootParamsFor "arm64"}}'));
  const named = structuredClone(bootable);
  named.OS.SupportedArchitectures.amd64.Initrds = ['a/my initrd', 'b/my initrd'];
  const script = { ...ipxe, ID: '', Contents: '{{.BootParams}}' };
  const [file] = plan(
    { ...named, Templates: [script] },
    { parameters: opts, archive: opened('d/linux', 'a/my initrd', 'b/my initrd') },
  ).files;
  assert.match(file?.contents ?? '', /^initrd=my%20initrd auto /, 'each name is one word, once');
});
