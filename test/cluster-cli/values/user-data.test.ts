import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { composeUserData } from '../../../cluster-cli/values/user-data.ts';

const file = (name: string, content: string | Buffer) => ({ name, bytes: Buffer.from(content) });

test('one file stays what it is, to the byte', () => {
  const bytes = Buffer.from([0x1f, 0x8b, 0, 255]);
  assert.deepEqual(composeUserData([{ name: 'x.gz', bytes }]), bytes);
  assert.equal(composeUserData([]), null);
});

test('the type of each part is that of its first line, and a cloud-config part carries nothing else', () => {
  const document = composeUserData([
    file('a', '#cloud-config\n'),
    file('b', '#!/bin/sh\n'),
    file('c', '#include\nhttp://x/\n'),
    file('d', '#include-once\nhttp://x/\n'),
    file('e', '#cloud-boothook\n'),
    file('f', '## template: jinja\n#cloud-config\n'),
    file('g', '#cloud-config-archive\n'),
    file('h', '#part-handler\n'),
  ])?.toString();
  assert.deepEqual(document?.match(/^Content-Type: .*$/gm), [
    'Content-Type: multipart/mixed; boundary="MIMEBOUNDARY"',
    'Content-Type: text/cloud-config',
    'Content-Type: text/x-shellscript',
    'Content-Type: text/x-include-url',
    'Content-Type: text/x-include-once-url',
    'Content-Type: text/cloud-boothook',
    'Content-Type: text/jinja2',
    'Content-Type: text/cloud-config-archive',
    'Content-Type: text/part-handler',
  ]);
});

test('a part that is not plain text, or holds the boundary, is base64', () => {
  const script = `#!/bin/sh\necho "${'ü'.repeat(60)}"\n`;
  const document = composeUserData([file('a', script), file('b', '#!x\n--MIMEBOUNDARY--\n')]);
  const [, first = '', second = ''] = document?.toString().split(/^--MIMEBOUNDARY(?:--)?\n/m) ?? [];
  for (const [part, content] of [
    [first, script],
    [second, '#!x\n--MIMEBOUNDARY--\n'],
  ] as const) {
    const [head = '', body = ''] = part.split('\n\n');
    assert.match(head, /^Content-Transfer-Encoding: base64$/m);
    assert.equal(Buffer.from(body, 'base64').toString(), content);
    assert.equal(
      body.split('\n').every((line) => line.length <= 76),
      true,
    );
  }
});

test('plain parts stay readable and keep their end', () => {
  const document = composeUserData([file('x/a b.sh', '#!/bin/sh\nls\n'), file('-', '#!/bin/sh')]);
  assert.equal(
    document?.toString(),
    [
      'Content-Type: multipart/mixed; boundary="MIMEBOUNDARY"',
      'MIME-Version: 1.0',
      '',
      '--MIMEBOUNDARY',
      'Content-Type: text/x-shellscript',
      'MIME-Version: 1.0',
      'Content-Transfer-Encoding: 7bit',
      'Content-Disposition: attachment; filename="001-a_b.sh"',
      '',
      '#!/bin/sh\nls\n',
      '--MIMEBOUNDARY',
      'Content-Type: text/x-shellscript',
      'MIME-Version: 1.0',
      'Content-Transfer-Encoding: 7bit',
      'Content-Disposition: attachment; filename="002-part"',
      '',
      '#!/bin/sh',
      '--MIMEBOUNDARY--',
      '',
    ].join('\n'),
  );
});

test('several files, one of which says nothing of its type, are refused by its name', () => {
  assert.throws(() => composeUserData([file('a', '#!/bin/sh\n'), file('notes.txt', 'hello')]), {
    code: 'VALIDATION',
    message: 'option --user-data: the type of notes.txt is unknown',
  });
});

test('compressed files and MIME messages are parts like any other', () => {
  const message =
    'Content-Type: multipart/mixed; boundary="MIMEBOUNDARY"\nMIME-Version: 1.0\n\n--MIMEBOUNDARY\n\n#!/bin/sh\n--MIMEBOUNDARY--\n';
  const compressed = gzipSync('#cloud-config\n{}\n');
  const document = composeUserData([
    { name: 'a.gz', bytes: compressed },
    { name: 'b.gz', bytes: gzipSync('#!/bin/sh\necho ü\n') },
    file('c.mime', message),
  ])?.toString();
  const [, first = '', second = '', third = ''] =
    document?.split(/^--MIMEBOUNDARY\.1(?:--)?\n/m) ?? [];
  assert.match(first, /^Content-Type: application\/gzip$/m);
  assert.deepEqual(Buffer.from(first.split('\n\n')[1] ?? '', 'base64'), compressed);
  assert.match(second, /^Content-Type: text\/x-shellscript$/m);
  assert.equal(third, `${message}\n`);
});

test('a damaged compressed file among several is refused by its name', () => {
  const damaged = { name: 'b.gz', bytes: Buffer.from([0x1f, 0x8b, 0]) };
  assert.throws(() => composeUserData([file('a', '#!/bin/sh\n'), damaged]), {
    code: 'VALIDATION',
    message: 'option --user-data: the type of b.gz is unknown: its gzip data is damaged',
  });
});
