import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { splitCloudDocument } from '../../../cluster-cli/values/cloud-parts.ts';
import { explainSilentDocuments } from '../../../cluster-cli/values/boot-report-obstacles.ts';
import { composeUserData } from '../../../cluster-cli/values/user-data.ts';

const explain = (
  userData: string | Buffer,
  vendorData = '',
  reporting: 'vendor-data' | 'user-data' = 'vendor-data',
): string | null =>
  explainSilentDocuments(
    {
      userData: splitCloudDocument('u', Buffer.from(userData)),
      vendorData: splitCloudDocument('v', Buffer.from(vendorData)),
    },
    reporting,
  )?.reason ?? null;

const OFF = '#cloud-config\nvendor_data: {enabled: false}\n';

for (const [name, userData] of [
  ['false', OFF],
  ['a word that is not true', '#cloud-config\nvendor_data: {enabled: "off"}\n'],
  ['no map', '#cloud-config\nvendor_data:\n'],
  [
    'a disabled handler',
    '#cloud-config\nvendor_data: {disabled_handlers: [text/cloud-boothook]}\n',
  ],
  ['compressed', gzipSync(OFF)],
  ['a template', `## template: jinja\n${OFF}`],
  [
    'an archive',
    '#cloud-config-archive\n- "#!/bin/sh"\n- {content: "vendor_data: {enabled: no}"}\n',
  ],
  [
    'a patch',
    '#cloud-config-jsonp\n[{"op": "add", "path": "/vendor_data/enabled", "value": false}]',
  ],
  [
    'a part of a message',
    `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/cloud-config\nContent-Transfer-Encoding: base64\n\n${Buffer.from(OFF).toString('base64')}\n--b--\n`,
  ],
  [
    'the second of two files',
    composeUserData([
      { name: 'a', bytes: Buffer.from('#!/bin/sh\n') },
      { name: 'b', bytes: Buffer.from(OFF) },
    ]) ?? '',
  ],
] as const) {
  test(`user data that turns vendor data off is found: ${name}`, () => {
    assert.match(explain(userData) ?? 'none', /^vendor_data in the user data/);
    assert.equal(explain(userData, '', 'user-data'), null);
  });
}

test('settings that leave the report alone are not named', () => {
  for (const userData of [
    '',
    '#!/bin/sh\n',
    '#cloud-config\nvendor_data: {enabled: yes, prefix: /bin/true}\n',
    '#cloud-config\nvendor_data: {enabled: 1}\n',
    '#cloud-config\nvendor_data: {disabled_handlers: [text/x-shellscript]}\n',
    '#cloud-config\nvendor_data2: {enabled: false}\n',
    '#cloud-config\ndisable_ec2_metadata: false\n',
    '{"vendor_data": {"enabled": false}}',
  ])
    assert.equal(explain(userData), null, userData);
  // Only the user data can turn vendor data off.
  assert.equal(explain('', OFF), null);
});

test('a route away from the metadata service is named, whatever carries the request for the report', () => {
  const rejecting = '#cloud-config\ndisable_ec2_metadata: true\n';
  for (const reporting of ['vendor-data', 'user-data'] as const) {
    assert.match(explain(rejecting, '', reporting) ?? '', /^disable_ec2_metadata/);
    assert.match(explain('', rejecting, reporting) ?? '', /^disable_ec2_metadata/);
  }
  assert.equal(explain('#cloud-config\ndisable_ec2_metadata: no\n', rejecting), null);
});

test('a patch whose paths are no texts, and a message of very many parts, are examined', () => {
  const patch = '[{"op": "add", "path": {"toString": 1, "valueOf": 1}, "value": 1}]';
  assert.equal(explain(`#cloud-config-jsonp\n${patch}`), null);
  const parts = '--b\n\n'.repeat(150_000);
  const message = `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n${parts}--b--\n`;
  assert.equal(explain(message), null);
});
