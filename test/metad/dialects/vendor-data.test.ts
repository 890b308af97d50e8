import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { vendorData } from '../../../metad/dialects/vendor-data.ts';
import { renderOpenstack } from '../../../metad/dialects/openstack.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

function vendorDataFor(
  document: string | Buffer | null,
  dialects = exampleView().dialects,
): string {
  const encoded = document === null ? null : Buffer.from(document).toString('base64');
  return vendorData(parseView(exampleView({ vendorData: encoded, dialects }))).toString();
}

function openstackVendorData(document: string | Buffer | null): string {
  const encoded = document === null ? null : Buffer.from(document).toString('base64');
  const view = parseView(exampleView({ vendorData: encoded }));
  const leaf = renderOpenstack(view, '').get('vendor_data.json');
  const value = JSON.parse(leaf?.kind === 'fixed' ? leaf.body.toString() : '') as Record<
    string,
    string
  >;
  return value['cloud-init'] ?? '';
}

test('vendor data without an operator’s document has one part, a boothook', () => {
  const [, script = '', more] = vendorDataFor(null).split('--GNTVENDORDATA\r\n');
  assert.match(
    script,
    /^Content-Type: text\/cloud-boothook;[^]*\r\n\r\n#cloud-boothook\n#!\/bin\/sh\n/,
  );
  assert.equal(more, undefined);
});

test('vendor data is empty without the ganeti dialect', () => {
  assert.equal(vendorDataFor(null, ['nocloud']), '');
});

test('an operator’s document is the first part, with its content type', () => {
  const types: [string | Buffer, string][] = [
    ['#cloud-config\nlocale: C\n', 'text/cloud-config'],
    ['#!/bin/sh\n', 'text/x-shellscript'],
    ['#include\nhttp://x/\n', 'text/x-include-url'],
    [gzipSync('#!/bin/sh\n'), 'application/gzip'],
    [Buffer.from([0x1f, 0x8b, 8, 0, 255]), 'text/plain'],
  ];
  for (const [document, type] of types) {
    const text = vendorDataFor(document);
    assert.match(text, /^Content-Type: multipart\/mixed; boundary="GNTVENDORDATA"\r\n/);
    const part = text.split('--GNTVENDORDATA\r\n')[1] ?? '';
    assert.ok(part.startsWith(`Content-Type: ${type}\r\n`), part);
    const content = Buffer.from(part.split('\r\n\r\n')[1] ?? '', 'base64');
    assert.ok(content.equals(Buffer.from(document)), type);
  }
});

test('a compressed document that is not ASCII is decompressed', () => {
  const text = '#cloud-config\nwrite_files: [{path: /etc/motd, content: Grüße}]\n';
  for (const carried of [vendorDataFor(gzipSync(text)), openstackVendorData(gzipSync(text))]) {
    const part = carried.split('--GNTVENDORDATA\r\n')[1] ?? '';
    assert.ok(part.startsWith('Content-Type: text/cloud-config\r\n'), part);
    assert.equal(Buffer.from(part.split('\r\n\r\n')[1] ?? '', 'base64').toString(), text);
  }
});

test('a MIME document is nested, and the outer boundary does not occur in it', () => {
  const text = vendorDataFor(
    'Content-Type: multipart/mixed; boundary="GNTVENDORDATA"\n\n--GNTVENDORDATA--\n',
  );
  assert.match(text, /boundary="GNTVENDORDATA[0-9a-f]{32}"/);
  const [, inner = ''] = /boundary="(GNTVENDORDATA[0-9a-f]+)"/.exec(text) ?? [];
  assert.match(vendorDataFor(`Content-Type: text/plain\n\n--${inner}\n`), /boundary="GNT/);
  assert.notEqual(/boundary="(\w+)"/.exec(vendorDataFor(text))?.[1], inner);
});

test('a document that resembles the boundary gets a boundary of at most 70 characters, which it does not contain', () => {
  const start = 'Content-Type: text/plain\n\n';
  const text = vendorDataFor(`${start}GNTVENDORDATA${'X'.repeat(16_384)}`);
  const [, boundary = ''] = /boundary="(\w+)"/.exec(text) ?? [];
  assert.ok(boundary.length <= 70, `${boundary.length} characters, each found by another search`);
  assert.equal(text.split(boundary).length - 1, 4);
});

test('a MIME message is nested with any first header and when compressed', () => {
  const message = 'MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n: grün\n';
  const given = [
    message,
    gzipSync(message),
    `X-Tool: any\n${message}`,
    `From anna Sun Nov 22 13:00:00 2026\n${message}`,
    `Content-Transfer-Encoding: 8bit\n${message}`,
  ];
  for (const document of given) {
    const [, part = ''] = vendorDataFor(document).split('--GNTVENDORDATA\r\n');
    assert.ok(part.endsWith(`${message}\r\n`), part);
    const carried = openstackVendorData(document);
    assert.ok(carried.includes(`${message}\r\n--GNTVENDORDATA\r\n`), carried);
  }
});

test('a script that writes a message is a script', () => {
  const part = vendorDataFor('#!/bin/sh\nprintf "MIME-Version: 1.0" | sendmail anna\n');
  assert.match(part, /^Content-Type: text\/x-shellscript\r$/m);
});

test('OpenStack’s vendor data has the MIME document for cloud-init', () => {
  assert.match(openstackVendorData(null), /^Content-Type: multipart\/mixed[^]*#cloud-boothook\n/);
});
