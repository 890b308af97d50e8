import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { HookFile } from '#shared/contract/hooks.ts';
import { DEFAULT_FIRST_MACHINE_UID } from '../../../../noded/host/machine-users.ts';
import { createHookChecker } from '../../../../noded/provision/os/check-hooks.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-check-hooks-'));
after(() => rmSync(directory, { recursive: true }));
const file = (name: string, text: string): HookFile => ({
  name,
  content: Buffer.from(text).toString('base64'),
});
const clusterDir = join(directory, 'cluster');
const applianceFile = join(directory, 'appliance-hooks.json');
let ownHooks: readonly string[] = [];
const checker = createHookChecker({
  ...{ clusterDir, applianceFile, firstUid: DEFAULT_FIRST_MACHINE_UID },
  hooksOf: (appliance) => Promise.resolve(appliance === 'mine' ? ownHooks : ['wrong one']),
  mirrors: () => Promise.resolve([]),
});
const instance = (...files: HookFile[]) => ({
  ...{ osPath: null, instance: files, hasImage: true, isReinstall: false, appliance: 'built' },
});

test('without a document nothing is started, and there is no order', async () => {
  assert.deepEqual(await checker.check(instance()), { documents: [], book: null });
});

test('the order is that of appliance, cluster and instance, with the documents and the names of fields and nothing of their values', async () => {
  mkdirSync(clusterDir);
  writeFileSync(
    join(clusterDir, '10-c.yaml'),
    'stages: {kairos-install.pre: [{commands: [SECRET]}], boot: [{}]}',
  );
  writeFileSync(
    applianceFile,
    JSON.stringify([file('a.yaml', 'name: own\nstages: {install.pre: [{name: first}]}')]),
  );
  const own = file(
    '50-i.yaml',
    `stages:
  after-reset: [{commands: [SECRET]}]
  install.pre:
    - {name: last, if: SECRET, files: [{path: /SECRET}], optional: true}
    - {name: early, after: [{name: own.first}]}
`,
  );
  const { documents, book } = await checker.check(instance(own));
  assert.deepEqual(
    documents.map(({ source, name }) => `${source}/${name}`),
    ['cluster/10-c.yaml', 'instance/50-i.yaml'],
  );
  assert.deepEqual(book, {
    stages: [
      {
        stage: 'install.pre',
        steps: [
          { label: "step 'first'", file: 'appliance/a.yaml', fields: [] },
          { label: 'step 1', file: 'cluster/10-c.yaml', fields: ['commands'] },
          { label: "step 'last'", file: 'instance/50-i.yaml', fields: ['optional', 'if', 'files'] },
          { label: "step 'early'", file: 'instance/50-i.yaml', fields: ['after'] },
        ],
      },
    ],
    remarks: ['cluster/10-c.yaml: ignored, not for installations: stage boot'],
  });
  assert.doesNotMatch(JSON.stringify(book), /SECRET/);
  const again = await checker.check({ ...instance(own), isReinstall: true });
  assert.deepEqual(
    again.book?.stages.map(({ stage }) => stage),
    ['install.pre', 'after-reset'],
  );
});

test('where an imported appliance is used, the hooks of the built one are none of its', async () => {
  const asMine = () => checker.check({ ...instance(), appliance: 'mine' });
  const plain = await asMine();
  assert.deepEqual(
    plain.book?.stages.flatMap(({ steps }) => steps.map(({ file: from }) => from)),
    ['cluster/10-c.yaml'],
  );
  ownHooks = ['a.yaml', 'b.yaml'];
  const { book } = await asMine();
  assert.equal(
    book?.remarks[0],
    'appliance mine runs hooks of its own before these, which are not shown: a.yaml, b.yaml',
  );
  rmSync(join(clusterDir, '10-c.yaml'));
  const alone = await asMine();
  assert.deepEqual(alone.book, { stages: [], remarks: [book.remarks[0]] });
});

const REFUSED: Readonly<Record<string, readonly [text: string, message: RegExp]>> = {
  'YAML that is none': ['a: [SECRET', /instance\/x\.yaml: line 1: not valid YAML/],
  'a mistyped stage': ['stages: {after-instal: []}', /unknown stage after-instal$/],
  'an unknown field': ['stages: {image: [{commadns: [SECRET]}]}', /unknown field "commadns"/],
  'a step that is nowhere': [
    'stages: {image: [{after: [{name: x.y}]}]}',
    /after 'x\.y', but this stage has no such step/,
  ],
  'packages where no mirror is allowed': [
    'stages: {after-install-chroot: [{packages: {install: [SECRET]}}]}',
    /step 1 of instance\/x\.yaml: "packages" needs a package mirror$/,
  ],
  'a layout that the image replaces': [
    'stages: {before-install: [{layout: {device: {path: /dev/disk/by-id/virtio-disk0}}}]}',
    /the disk that the image is written to afterwards/,
  ],
};
for (const [what, [text, message]] of Object.entries(REFUSED)) {
  test(`${what} is refused before anything is changed, by place and never by content`, async () => {
    await assert.rejects(
      checker.check(instance(file('x.yaml', text))),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'VALIDATION');
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /SECRET/);
        return true;
      },
    );
  });
}

test('who asks no more gets the reason, and nothing stays behind', async () => {
  const reason = new Error('enough');
  const ends = new AbortController();
  const checks = [1, 2, 3].map(() =>
    checker.check(instance(file('x.yaml', 'stages: {}')), ends.signal),
  );
  ends.abort(reason);
  for (const end of await Promise.allSettled(checks)) {
    assert.equal(end.status, 'rejected');
    assert.equal(end.status === 'rejected' && end.reason, reason);
  }
});

test("the appliance's hooks that cannot be read are an error by their name", async () => {
  writeFileSync(applianceFile, 'no JSON');
  await assert.rejects(checker.check(instance()), { code: 'FILE_UNREADABLE' });
});
