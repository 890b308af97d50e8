import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { examineCertificate } from '../../../../noded/operations/doctor/examine-rapi-certificate.ts';

const DAY_MS = 86_400_000;

test('doctor warns before the certificate of the remote API expires, and fails afterwards', async () => {
  const { stdout } = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
    ...['-keyout', '-', '-days', '90', '-subj', '/CN=node1'],
  ]);
  const given = { file: '/etc/gnt/rapi.pem', pem: Buffer.from(stdout), hint: 'Replace it.' };
  const at = (day: number) => examineCertificate(given, Date.now() + day * DAY_MS);
  const fine = at(0);
  assert.deepEqual([fine.level, fine.hint], ['ok', null]);
  assert.match(fine.message, /rapi\.pem\) is valid until \d{4}-\d\d-\d\d$/);
  assert.equal(at(68).level, 'ok');
  assert.deepEqual([at(70).level, at(70).hint], ['warning', 'Replace it.']);
  assert.match(at(91).message, /expired on .*: clients refuse it$/);
  assert.equal(at(91).level, 'error');
});
