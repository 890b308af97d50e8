import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  remarkOnNetworkConfig,
  remarkOnUserData,
} from '../../../cluster-cli/commands/instance/cloud-documents.ts';

for (const [text, remark] of [
  ['#cloud-confg\nusers: []\n', /did you mean #cloud-config\?/],
  ['# cloud-config\nusers: []\n', /did you mean #cloud-config\?/],
  ['users: []\n', /cloud-init does not know its first line 'users: \[\]'/],
  ['#cloud-config\nusers: [\n', /invalid cloud-config: .* line 3/],
  ['#cloud-config\na: 1\n b: 2\n', /invalid cloud-config: .* line/],
] as const) {
  test(`user data that begins ${JSON.stringify(text.slice(0, 20))} has a remark`, () => {
    assert.match(remarkOnUserData(Buffer.from(text)) ?? 'none', remark);
  });
}

test('what guests take has none', () => {
  for (const text of [
    '',
    '#cloud-config\nusers: []\n',
    '#cloud-config-archive\n- x\n',
    '#!/bin/sh\n',
    '#include\nhttp://x/\n',
    '## template: jinja\n#cloud-config\n',
    'Content-Type: multipart/mixed; boundary="x"\n',
    '{"ignition": {}}',
  ]) {
    assert.equal(remarkOnUserData(Buffer.from(text)), null, text);
  }
  assert.equal(remarkOnUserData(gzipSync('anything')), null);
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
  assert.match(remark('version: [\n') ?? '', /^not YAML: /);
  const long = Array.from({ length: 2001 }, (_, index) => `  eth${index}: {}\n`).join('');
  assert.match(
    remark(`version: 2\nethernets:\n${long}`) ?? '',
    /channel cannot be added.*2000 lines/,
  );
});
