import { gzipSync } from 'node:zlib';

/** The log of the executed kinds, a line each. */
export const RAN = 'var/ran';

const RUN = (text: string): string => `#!/bin/sh\necho ${text} >>/${RAN}\n`;

/** A key of the operator's metadata that `KINDS_OF_USER_DATA` includes from the service. */
export const INCLUDED_KEY = 'script';
export const INCLUDED_SCRIPT = RUN('include');

interface Part {
  readonly type: string;
  readonly content: string | Buffer;
}

/** Returns one MIME document, each part in base64. */
function multipart(parts: readonly Part[]): Buffer {
  const boundary = '==gnt==';
  const lines = parts.flatMap(({ type, content }, index) => [
    `--${boundary}`,
    `Content-Type: ${type}`,
    'MIME-Version: 1.0',
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: attachment; filename="part-${index}"`,
    '',
    Buffer.from(content).toString('base64'),
    '',
  ]);
  return Buffer.from(
    [
      `Content-Type: multipart/mixed; boundary="${boundary}"`,
      'MIME-Version: 1.0',
      '',
      ...lines,
      `--${boundary}--`,
      '',
    ].join('\n'),
  );
}

const JINJA = `## template: jinja
#cloud-config
runcmd:
  - echo jinja {{ v1.local_hostname }} {{ ds.meta_data.role }} >>/${RAN}
`;
const PART_HANDLER = `#part-handler
def list_types():
    return ["text/x-gnt"]

def handle_part(data, ctype, filename, payload):
    if ctype == "text/x-gnt":
        with open("/${RAN}", "a") as ran:
            ran.write("part-handler " + payload)
`;

/** All kinds of documents that cloud-init executes, in one compressed document. */
export const KINDS_OF_USER_DATA = gzipSync(
  multipart([
    { type: 'text/cloud-boothook', content: `#cloud-boothook\n${RUN('boothook')}` },
    { type: 'text/part-handler', content: PART_HANDLER },
    { type: 'text/x-gnt', content: 'payload\n' },
    { type: 'text/jinja2', content: JINJA },
    { type: 'text/x-shellscript', content: RUN('script') },
    { type: 'application/gzip', content: gzipSync(RUN('gzip')) },
    {
      type: 'text/x-include-url',
      content: `#include\nhttp://169.254.169.254/latest/meta-data/tags/instance/${INCLUDED_KEY}\n`,
    },
  ]),
);
export const KINDS_RAN = [
  'boothook',
  'gzip',
  'include',
  'jinja web1 web',
  'part-handler payload',
  'script',
];

/** An operator's several documents, none of which may get lost beside ours. */
const VENDOR_PARTS = multipart([
  { type: 'text/cloud-boothook', content: `#cloud-boothook\n${RUN('vendor boothook')}` },
  { type: 'text/cloud-config', content: `#cloud-config\nruncmd: [echo unused]\n` },
  { type: 'text/x-shellscript', content: RUN('vendor script') },
]);
/** Compressed as by Terraform, with another header first, and not only ASCII. */
export const MULTIPART_VENDOR_DATA = gzipSync(
  Buffer.concat([Buffer.from('X-Written-By: Jürgen\n'), VENDOR_PARTS]),
);
export const VENDOR_RAN = ['vendor boothook', 'vendor script'];
