import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { Site } from '../../../metad/dialects/site.ts';
import type { Resource } from '../../../metad/dialects/tree.ts';
import { parseView, redactView } from '../../../metad/view/served-view.ts';

import { bootingView, exampleView } from '../support/view-fixture.ts';

const { uuid } = exampleView();
const MACHINE = `ganeti/latest/boot/machines/${uuid}`;

function find(site: Pick<Site, 'find'>, path: string): Resource | undefined {
  const address = resolveAddress(path);
  return address && site.find(address);
}

function textAt(site: Pick<Site, 'find'>, path: string): string | undefined {
  const found = find(site, path);
  return found?.kind === 'content' ? `${found.status} ${found.body.toString()}` : found?.source;
}

function siteOf(view: InstanceView = bootingView()): Site {
  return new Site(parseView(view), { password: '' });
}

test('rendered files lie where dr-provision has them, and the tree lies beside them', () => {
  const site = siteOf();
  assert.equal(textAt(site, 'ganeti/latest/boot/52:54:00:e1:a3:45.ipxe'), '200 #!ipxe\nexit\n');
  assert.equal(textAt(site, `${MACHINE}/preseed.cfg`), '200 S3CRET\n');
  assert.equal(textAt(site, MACHINE), '200 boot\npreseed.cfg\n');
  for (const path of ['', '/vmlinuz', '/pool/main/a/a.deb', '/..'])
    assert.equal(textAt(site, `${MACHINE}/boot${path}`), 'boot', path);
});

test('files of another instance, or of an instance without a tree, are not found', () => {
  const other = MACHINE.replace(uuid, 'c5fe7f7b-3bf8-491f-9c11-e6a91766c40f');
  for (const path of [`${other}/preseed.cfg`, `${other}/boot/vmlinuz`, `${other}/boot`])
    assert.equal(find(siteOf(), path), undefined, path);
  const { boot } = bootingView();
  assert.ok(boot);
  const treeless = siteOf(bootingView({ boot: { ...boot, hasTree: false } }));
  assert.equal(find(treeless, `${MACHINE}/boot/vmlinuz`), undefined);
  assert.equal(find(siteOf(exampleView()), `${MACHINE}/preseed.cfg`), undefined);
});

test('a rendered file overrides the file of the same name in the tree', () => {
  const { boot } = bootingView();
  assert.ok(boot);
  const own = { content: Buffer.from('own').toString('base64'), isSecretBearing: false };
  const files = { ...boot.files, [`machines/${uuid}/boot/isolinux/boot.msg`]: own };
  const site = siteOf(bootingView({ boot: { ...boot, files } }));
  assert.equal(textAt(site, `${MACHINE}/boot/isolinux/boot.msg`), '200 own');
  assert.equal(textAt(site, `${MACHINE}/boot/vmlinuz`), 'boot');
});

test('firmware gets its files whichever dialects the guest has, and nothing else of that dialect', () => {
  const site = siteOf(bootingView({ dialects: ['ec2'] }));
  assert.equal(textAt(site, `${MACHINE}/preseed.cfg`), '200 S3CRET\n');
  assert.equal(find(site, 'ganeti/latest/os/parameters.json'), undefined);
});

test('an operator sees no file that private parameters went into', () => {
  const site = new Site(redactView(parseView(bootingView())), { password: '' });
  assert.equal(textAt(site, `${MACHINE}/preseed.cfg`), '200 <redacted>\n');
  assert.equal(textAt(site, 'ganeti/latest/boot/52:54:00:e1:a3:45.ipxe'), '200 #!ipxe\nexit\n');
});

test('a file whose secrets are lost gets 410 with their names, unless this installation has rendered it before', () => {
  const { boot } = bootingView();
  assert.ok(boot);
  const files = { ...boot.files, [`machines/${uuid}/preseed.cfg`]: { lost: ['rootpw'] } };
  const lost = bootingView({ boot: { ...boot, files }, revision: 2 });
  assert.match(textAt(siteOf(lost), `${MACHINE}/preseed.cfg`) ?? '', /^410 .*rootpw/);
  const instance = new Instance(parseView(bootingView()), systemClock);
  instance.replaceView(parseView(lost));
  assert.equal(textAt(instance, `${MACHINE}/preseed.cfg`), '200 S3CRET\n');
  instance.replaceView(parseView({ ...lost, boot: { ...boot, files, bootEnv: 'other' } }));
  assert.match(textAt(instance, `${MACHINE}/preseed.cfg`) ?? '', /^410 /, 'another environment');
  instance.replaceView(parseView(bootingView()));
  // Files that noded cannot render again stay, for the installation that has them.
  const unrendered = { ...bootingView(), boot: undefined, keepsBoot: true };
  const shown = textAt(instance, `${MACHINE}/preseed.cfg`);
  instance.replaceView(parseView(unrendered));
  assert.equal(textAt(instance, `${MACHINE}/preseed.cfg`), shown);
  assert.doesNotMatch(shown ?? '', /^4/);
  instance.replaceView(parseView({ ...unrendered, instanceId: uuid }));
  assert.match(textAt(instance, `${MACHINE}/preseed.cfg`) ?? '404', /^404/);
  instance.replaceView(parseView(bootingView()));
  instance.replaceView(parseView({ ...lost, instanceId: uuid }));
  assert.match(textAt(instance, `${MACHINE}/preseed.cfg`) ?? '', /^410 /, 'another installation');
});

test('a file with a lost secret gets 410 when its public values have changed', () => {
  const path = `machines/${uuid}/preseed.cfg`;
  const { boot } = bootingView();
  assert.ok(boot);
  const [one, other] = ['1'.repeat(64), '2'.repeat(64)];
  const given = boot.files[path];
  assert.ok(given);
  const viewOf = (file: object) =>
    parseView(bootingView({ boot: { ...boot, files: { ...boot.files, [path]: file } } as never }));
  const instance = new Instance(viewOf({ ...given, basis: one }), systemClock);
  const lost = { lost: ['rootpw'] };
  instance.replaceView(viewOf({ ...lost, basis: one }));
  assert.equal(textAt(instance, `${MACHINE}/preseed.cfg`), '200 S3CRET\n');
  instance.replaceView(viewOf({ ...lost, basis: other }));
  assert.match(textAt(instance, `${MACHINE}/preseed.cfg`) ?? '', /^410 .*rootpw/);
  instance.replaceView(viewOf({ ...given, basis: other }));
  assert.equal(textAt(instance, `${MACHINE}/preseed.cfg`), '200 S3CRET\n');
});

test('a view with paths outside the tree or too large files is refused', () => {
  const { boot } = bootingView();
  assert.ok(boot);
  const file = (bytes: number): { content: string; isSecretBearing: boolean } => ({
    content: Buffer.alloc(bytes).toString('base64'),
    isSecretBearing: false,
  });
  const refused = (files: Record<string, ReturnType<typeof file>>, why: RegExp): void =>
    assert.throws(() => parseView(bootingView({ boot: { ...boot, files } })), why);
  for (const path of ['/a', '../a', 'a/..', 'a//b', 'a/./b', 'a b', 'a?b', '', 'a/'])
    refused({ [path]: file(1) }, /malformed view: boot\.files/);
  refused({ a: file(1024 * 1024 + 3) }, /malformed view: boot\.files\.a/);
  const five = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((n) => [n, file(1024 * 1000)]));
  refused(five, /more than 4194304 bytes/);
});
