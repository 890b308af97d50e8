import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';
import { redactSource } from '#shared/contract/redact-source.ts';

test('hides user and password of a URL, and keeps the rest', () => {
  assert.equal(
    redactSource('https://me:p@ss@images.example.com/a.qcow2?x=1'),
    'https://<redacted>@images.example.com/a.qcow2?x=1',
  );
  assert.equal(redactSource('ftp://me@host/a'), 'ftp://<redacted>@host/a');
});

test('hides what a presigned URL carries in its query', () => {
  assert.equal(
    redactSource('https://s3.example.com/a?X-Amz-Signature=abc&part=2&token=t#f'),
    'https://s3.example.com/a?X-Amz-Signature=<redacted>&part=2&token=<redacted>#f',
  );
});

test('leaves paths and URLs without credentials alone', () => {
  for (const source of [
    '/srv/images/a@b.raw',
    '/srv/a?token=x',
    'http://host/a@b',
    'http://host/a',
  ])
    assert.equal(redactSource(source), source);
});

test('a job record shows sources without their credentials', () => {
  const full = opcode.parse({
    opcode: 'INSTANCE_CREATE',
    name: 'web1',
    osImage: 'http://host/a.raw?sig=HIDDEN',
    personalizationPackage: 'http://host/a.tgz?token=HIDDEN',
  });
  const shown = JSON.stringify(redactOpcode(full));
  assert.ok(!shown.includes('HIDDEN'), shown);
});
