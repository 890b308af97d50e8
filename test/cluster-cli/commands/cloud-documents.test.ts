import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  remarkOnBeginning,
  remarkOnNetworkConfig,
} from '../../../cluster-cli/commands/instance/cloud-documents.ts';

const remark = (document: string | Buffer, isAlone = true): string | null =>
  remarkOnBeginning(Buffer.from(document), isAlone);

for (const [text, expected] of [
  ['#cloud-confg\nusers: []\n', /did you mean #cloud-config\?/],
  ['# cloud-config\nusers: []\n', /did you mean #cloud-config\?/],
  ['users: []\n', /cloud-init does not know its first line 'users: \[\]'/],
  ['\ufeff#cloud-config\n', /byte order mark/],
  ['\n#!/bin/sh\n', /white space before #!/],
  ['Content-Type: multipart/mixed; boundary="x"\n', /with the line 'MIME-Version: 1.0'/],
] as const) {
  test(`user data that begins ${JSON.stringify(text.slice(0, 20))} has a remark`, () => {
    assert.match(remark(text) ?? 'none', expected);
  });
}

test('bytes that cloud-init ignores have a remark', () => {
  const latin1 = Buffer.from('#!/bin/sh\necho \xfc\n', 'latin1');
  assert.match(remark(latin1) ?? '', /not UTF-8/);
  assert.equal(remark(latin1, false), null);
  assert.match(remark(gzipSync('anything')) ?? '', /does not know its first line/);
  assert.match(remark(Buffer.from([0x1f, 0x8b, 8])) ?? '', /its gzip data is damaged/);
});

test('documents that guests take have none', () => {
  for (const text of [
    '',
    '#cloud-config\nusers: []\n',
    '\n\n#cloud-config\n',
    '#Cloud-Config\n',
    '#cloud-config-archive\n- x\n',
    '#!/bin/sh\n',
    '#include\nhttp://x/\n',
    '## template: jinja\n#cloud-config\n',
    'Mime-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n',
    'From nobody\nMIME-Version: 1.0\n',
    '{"ignition": {}}',
    '#systemd-userdata\n',
    '#ps1_sysnative\n',
  ])
    assert.equal(remark(text), null, text);
  assert.equal(remark(gzipSync('#cloud-config\n')), null);
});

test('a network configuration is looked at too', () => {
  const remark = (text: string): string | null => remarkOnNetworkConfig(Buffer.from(text));
  assert.equal(remark('version: 2\nethernets: {}\n'), null);
  assert.equal(remark('network:\n  version: 1\n  config: []\n'), null);
  assert.equal(remark('a: &a {version: 2}\nnetwork: {<<: *a, ethernets: {}}\n'), null);
  assert.match(
    remark('a: &a {config: disabled}\nnetwork: *a\n') ?? '',
    /disables the network configuration, also of the channel/,
  );
  const many = (of: string): string => `[${Array<string>(40).fill(`*${of}`).join(', ')}]`;
  const bomb = `a: &a [x]\nb: &b ${many('a')}\nc: &c ${many('b')}\nd: ${many('c')}\n`;
  assert.match(remark(`version: 2\n${bomb}`) ?? '', /aliases expand to too much/);
  assert.match(remark('network:\n') ?? '', /cloud-init needs version 1 or 2/);
  assert.match(
    remark('network: {config: disabled}\n') ?? '',
    /disables the network configuration, also of the channel/,
  );
  assert.match(remark('ethernets: {}\n') ?? '', /cloud-init needs version 1 or 2/);
  assert.match(remark('version: [\n') ?? '', /channel cannot be added.*line 2: not valid YAML/);
  assert.match(remark('['.repeat(100_000)) ?? '', /channel cannot be added.*nested/);
  const long = Array.from({ length: 2001 }, (_, index) => `  eth${index}: {}\n`).join('');
  assert.match(
    remark(`version: 2\nethernets:\n${long}`) ?? '',
    /channel cannot be added.*2000 lines/,
  );
});
