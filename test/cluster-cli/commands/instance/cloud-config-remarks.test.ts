import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import { remarkOnCloudConfigs } from '../../../../cluster-cli/commands/instance/cloud-config-remarks.ts';
import { splitCloudDocument } from '../../../../cluster-cli/values/cloud-parts.ts';
import { threadMs } from '../../../lab/thread-time.ts';

const remarks = (...documents: readonly string[]): readonly string[] =>
  remarkOnCloudConfigs(
    documents.flatMap((text, index) => splitCloudDocument(`f${index}`, Buffer.from(text))),
  ).map(({ name, text }) => `${name}: ${text}`);

test('a cloud-config that replaces keys of an earlier one is named with its key and both files', () => {
  const [remark, ...others] = remarks(
    '#cloud-config\nruncmd: [a]\nhostname: x\n',
    '#!/bin/sh\n',
    '#cloud-config\nruncmd: [b]\nhostname: x\n',
  );
  assert.match(remark ?? '', /^f2: its 'runcmd' replaces the 'runcmd' of f0/);
  assert.deepEqual(others, []);
});

test('a later cloud-config that says how to merge replaces nothing', () => {
  for (const how of ['merge_how', 'merge_type'])
    assert.deepEqual(
      remarks('#cloud-config\nruncmd: [a]\n', `#cloud-config\n${how}: list(append)\nruncmd: [b]\n`),
      [],
    );
  const part = (header: string, command: string): string =>
    `--b\nContent-Type: text/cloud-config\n${header}\n#cloud-config\nruncmd: [${command}]\n`;
  const message = (header: string): string =>
    `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n${part('', 'a')}${part(header, 'b')}--b--\n`;
  assert.deepEqual(remarks(message('X-Merge-Type: list(append)\n')), []);
  assert.match(remarks(message('')).join(), /^part 2 of f0: its 'runcmd' replaces/);
});

for (const [mode, remark] of [
  ['640', /permissions 640 is a decimal number, which is the mode 01200: write '0640' with quotes/],
  ['0640', null],
  ["'640'", null],
  ['0o640', null],
  ["'rw-r--r--'", /permissions 'rw-r--r--' is not octal: cloud-init uses 0644/],
  ['0888', /is not octal|decimal/],
  ['.nan', null],
  ['1e400', null],
] as const) {
  test(`permissions: ${mode} ${remark === null ? 'is taken as it is' : 'has a remark'}`, () => {
    const found = remarks(`#cloud-config\nwrite_files:\n- {path: /x, permissions: ${mode}}\n`);
    assert.equal(found.length, remark === null ? 0 : 1);
    assert.match(found[0] ?? '', remark ?? /^$/);
  });
}

test('a key that a cloud-config repeats is named, and is no invalid document', () => {
  const [remark, ...others] = remarks('#cloud-config\nruncmd: [a]\npackages: [b]\nruncmd: [c]\n');
  assert.match(
    remark ?? '',
    /the key 'runcmd' is repeated at line 4: cloud-init uses the last one/,
  );
  assert.deepEqual(others, []);
});

test('a cloud-config that is no map is named, in whatever it is packed', () => {
  assert.match(remarks('#cloud-config\n- a\n').join(), /cloud-init ignores it/);
  assert.match(
    remarks('#cloud-config-archive\n- {type: text/cloud-config, content: "[1"}\n').join(),
    /cannot be read as a cloud-config: line 1: not valid YAML/,
  );
  assert.deepEqual(remarks('#cloud-config\n'), []);
});

for (const [what, config, remark] of [
  ['brackets', `a: ${'['.repeat(100_000)}`, /cannot be read as a cloud-config.*nested/],
  ['keys', Array.from({ length: 19_000 }, (_, at) => `k${at}: 1\n`).join(''), /^$/],
  ['repeated keys', 'a: 1\n'.repeat(19_000), /(f0: the key 'a' is repeated at line \d+: .*){10}$/],
  ['maps that are keys', `${'{'.repeat(40)}a${'}: 1'.repeat(39)}}`, /a key is not a scalar/],
  ['repeated keys, then aliases', `a: 1\na: &a 2\n${'b: *a\n'.repeat(9000)}`, /200 aliases/],
] as const) {
  test(`a cloud-config of many ${what} is examined in no time`, () => {
    const tookMs = threadMs(() => {
      assert.match(remarks(`#cloud-config\n${config}`).join(''), remark);
    });
    assert.ok(tookMs < 3000, `${tookMs} ms`);
  });
}

test('a cloud-config may have binary content, as its documentation shows', () => {
  assert.deepEqual(remarks('#cloud-config\nwrite_files:\n- content: !!binary |\n    AAEC\n'), []);
});

test('hundreds of parts that unpack to 4 MiB each are examined in no time', () => {
  const packed = gzipSync(`#cloud-config\n${'#'.repeat(4_000_000)}`).toString('base64');
  const part = `--b\nContent-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n${packed}\n`;
  const message = `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n${part.repeat(180)}--b--\n`;
  const tookMs = threadMs(() => {
    assert.deepEqual(remarks(message), []);
  });
  assert.ok(tookMs < 3000, `${tookMs} ms`);
});
