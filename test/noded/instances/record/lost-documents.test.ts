import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { AGENT_TYPE_TAG } from '#shared/contract/agent-tags.ts';
import { refuseLostDocuments } from '../../../../noded/instances/record/lost-documents.ts';
import { instanceRecord } from '../../support/records.ts';

const encode = (document: string | Buffer): string => Buffer.from(document).toString('base64');
const MESSAGE = 'MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n';
const LATIN1 = Buffer.from(`X-By: J\xfcrgen\n${MESSAGE}`, 'latin1');
const HUGE = gzipSync(Buffer.alloc(5 * 1024 * 1024, `#!/bin/sh\n`));

test('vendor data that cloud-init would not carry out is refused by name', () => {
  for (const [document, why] of [
    ['packages: [vim]\n', /cloud-init does not recognize the first line/],
    [LATIN1, /not in UTF-8/],
    [Buffer.from([0x1f, 0x8b, 8, 0, 255]), /gzip data is damaged/],
    [HUGE, /larger than 4 MiB/],
  ] as const) {
    assert.throws(
      () => instanceRecord({ vendorData: encode(document) }),
      (error: Error) => {
        assert.match(error.message, /^--vendor-data: /);
        assert.match(error.message, why);
        return true;
      },
    );
  }
  for (const document of [MESSAGE, gzipSync(MESSAGE), '\n#Cloud-Config\n', `X-A: ü\n${MESSAGE}`])
    assert.equal(instanceRecord({ vendorData: encode(document) }).vendorData, encode(document));
});

test("what is not cloud-init's does not go with a part of ours behind it", () => {
  const hvparams = { boot_report: 'user-data' } as const;
  for (const document of ['#systemd-userdata\n', '{"ignition":{"version":"3.4.0"}}', LATIN1]) {
    const userData = encode(document);
    const plain = instanceRecord({ userData });
    assert.throws(() => instanceRecord({ userData, hvparams }), {
      code: 'VALIDATION',
      message: /^--user-data cannot be combined with boot_report=user-data: /,
    });
    const joined = { ...plain, hvparams };
    assert.throws(() => refuseLostDocuments(joined, { hvparams }), { code: 'VALIDATION' });
    // Stored values do not block other changes.
    refuseLostDocuments(joined, { hvparams: {} });
    refuseLostDocuments({ ...joined, dialects: ['ec2'] }, { hvparams });
  }
  instanceRecord({ userData: encode('#cloud-config\n'), hvparams });
  instanceRecord({ hvparams });
});

test('what is not cloud-init’s does not go with a tag that puts parts of ours before it', () => {
  const type = 'rs_agent:type=right_link_lite';
  const userData = encode('{"ignition":{"version":"3.4.0"}}');
  const refusal = {
    code: 'VALIDATION',
    message: /^--user-data cannot be combined with rs_agent:type=right_link_lite: /,
  };
  assert.throws(() => instanceRecord({ userData, tags: [type] }), refusal);
  const tagged = { ...instanceRecord({ userData }), tags: [type] };
  assert.throws(() => refuseLostDocuments(tagged, { addTags: [type] }), refusal);
  assert.throws(() => refuseLostDocuments(tagged, { tags: [type] }), refusal);
  refuseLostDocuments(tagged, { hvparams: {} });
  instanceRecord({ userData: encode('#cloud-config\n'), tags: [type] });
});

test('a tag for the agent that says nothing is refused by name', () => {
  const wrong = 'rs_agent:mime_include_url=none';
  assert.throws(() => instanceRecord({ tags: [wrong] }), {
    code: 'VALIDATION',
    message:
      /^the tag rs_agent:mime_include_url=none has an invalid value: expected an http or https URL$/,
  });
  const stored = { ...instanceRecord({}), tags: [wrong] };
  assert.throws(() => refuseLostDocuments(stored, { addTags: [wrong] }), { code: 'VALIDATION' });
  refuseLostDocuments(stored, { userData: encode('#!/bin/sh\n') });
});

test('tags of ours that are stored stand in the way of no other one', () => {
  const wrong = { ...instanceRecord({}), tags: ['rs_agent:mime_identity=foo', 'blue'] };
  refuseLostDocuments(wrong, { addTags: ['blue'] });
  const tagged = {
    ...instanceRecord({}),
    userData: encode('no format'),
    tags: [AGENT_TYPE_TAG, 'blue'],
  };
  refuseLostDocuments(tagged, { addTags: ['blue'] });
});
