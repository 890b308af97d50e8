import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import type { NodeParts } from '../../../../noded/operations/doctor/check.ts';
import {
  checkCertificates,
  examineCertificate,
} from '../../../../noded/operations/doctor/examine-certificates.ts';

const DAY_MS = 86_400_000;

async function makeCertificate(days: number): Promise<Buffer> {
  const { stdout } = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
    ...['-keyout', '-', '-days', String(days), '-subj', '/CN=node1'],
  ]);
  return Buffer.from(stdout);
}

test('doctor warns before the certificate of the remote API expires, and fails afterwards', async () => {
  const given = {
    ...{ check: 'rapi-certificate', subject: 'the remote API', file: '/etc/gnt/rapi.pem' },
    ...{ pem: await makeCertificate(90), hint: 'Replace it.' },
  };
  const at = (day: number) => examineCertificate(given, Date.now() + day * DAY_MS);
  const fine = at(0);
  assert.deepEqual([fine.level, fine.hint], ['ok', null]);
  assert.match(fine.message, /rapi\.pem\) is valid until \d{4}-\d\d-\d\d$/);
  assert.equal(at(68).level, 'ok');
  assert.deepEqual([at(70).level, at(70).hint], ['warning', 'Replace it.']);
  assert.match(at(91).message, /expired on .*: clients refuse it$/);
  assert.equal(at(91).level, 'error');
});

test('doctor examines the certificate of each listener, and none without listeners', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-certificates-'));
  try {
    const [rapi, identity] = ['rapi', 'identity'].map((name) => ({
      certificateFile: join(directory, `${name}.pem`),
    }));
    await writeFile(identity?.certificateFile ?? '', await makeCertificate(7));
    const examine = async (config: object) => {
      // Other parts are not examined.
      const findings = [await checkCertificates({ config } as unknown as NodeParts)].flat();
      return findings.map(({ check, level }) => [check, level]);
    };
    assert.deepEqual(await examine({ rapi: null, web: null, identity: null }), []);
    assert.deepEqual(await examine({ rapi, identity }), [
      ['rapi-certificate', 'warning'],
      ['identity-certificate', 'warning'],
    ]);
    await writeFile(identity?.certificateFile ?? '', await makeCertificate(90));
    assert.deepEqual(await examine({ rapi: null, identity }), [['identity-certificate', 'ok']]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
