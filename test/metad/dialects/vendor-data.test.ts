import assert from 'node:assert/strict';
import { test } from 'node:test';
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

test('without an operator’s document it reports each boot and tells its result', () => {
  const [, config = '', script = ''] = vendorDataFor(null).split('--GNTVENDORDATA\r\n');
  assert.match(config, /^Content-Type: text\/cloud-config;/);
  assert.match(config, /\r\n\r\n#cloud-config\nreporting:\n {2}gnt:\n/);
  assert.match(
    config,
    /^ {4}endpoint: http:\/\/169\.254\.169\.254\/ganeti\/latest\/boot\/events$/m,
  );
  assert.match(
    script,
    /^Content-Type: text\/cloud-boothook;[^]*\r\n\r\n#cloud-boothook\n#!\/bin\/sh\n/,
  );
});

test('without the ganeti dialect there is nobody to tell, and it is empty', () => {
  assert.equal(vendorDataFor(null, ['nocloud']), '');
});

test('an operator’s document is in a part of its own before ours, of the right type', () => {
  const types: [string | Buffer, string][] = [
    ['#cloud-config\nlocale: C\n', 'text/cloud-config'],
    ['#!/bin/sh\n', 'text/x-shellscript'],
    ['#include\nhttp://x/\n', 'text/x-include-url'],
    [Buffer.from([0x1f, 0x8b, 8, 0, 255]), 'application/gzip'],
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

test('a MIME document is nested as it is, and never meets our boundary', () => {
  const text = vendorDataFor(
    'Content-Type: multipart/mixed; boundary="GNTVENDORDATA"\n\n--GNTVENDORDATA--\n',
  );
  assert.match(text, /boundary="GNTVENDORDATAX"/);
});

test('OpenStack’s flavour carries it below the key that cloud-init reads', () => {
  const leaf = renderOpenstack(parseView(exampleView()), '').get('vendor_data.json');
  const value = JSON.parse(leaf?.kind === 'fixed' ? leaf.body.toString() : '') as Record<
    string,
    string
  >;
  assert.match(value['cloud-init'] ?? '', /^Content-Type: multipart\/mixed[^]*#cloud-config\n/);
});
