import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { refuseLostDocuments } from '../../../noded/instances/lost-documents.ts';
import { instanceRecord } from '../support/records.ts';

const encode = (document: string | Buffer): string => Buffer.from(document).toString('base64');
const MESSAGE = 'MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n';
const LATIN1 = Buffer.from(`X-By: J\xfcrgen\n${MESSAGE}`, 'latin1');
const HUGE = gzipSync(Buffer.alloc(5 * 1024 * 1024, `#!/bin/sh\n`));

test('vendor data that cloud-init would not carry out is refused by name', () => {
  for (const [document, why] of [
    ['packages: [vim]\n', /begins with nothing that cloud-init knows/],
    [LATIN1, /not in UTF-8/],
    [Buffer.from([0x1f, 0x8b, 8, 0, 255]), /gzip is damaged/],
    [HUGE, /more than 4 MiB/],
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
      message: /^--user-data does not go with boot_report=user-data: /,
    });
    const joined = { ...plain, hvparams };
    assert.throws(() => refuseLostDocuments(joined, { hvparams }), { code: 'VALIDATION' });
    // Another change is not in the way of what is stored.
    refuseLostDocuments(joined, { hvparams: {} });
    refuseLostDocuments({ ...joined, dialects: ['ec2'] }, { hvparams });
  }
  instanceRecord({ userData: encode('#cloud-config\n'), hvparams });
  instanceRecord({ hvparams });
});
