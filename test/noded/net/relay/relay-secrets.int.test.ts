import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { reveal } from '#shared/secret/secret.ts';
import { type Logger, silentLogger } from '#shared/log/log.ts';
import type { NodeParts } from '../../../../noded/operations/doctor/check.ts';
import { checkRelays } from '../../../../noded/operations/doctor/examine-relays.ts';
import { RelaySecrets } from '../../../../noded/net/relay/relay-secrets.ts';

const URL = 'https://api.example.com/v1';
const relay = { url: URL, auth: { kind: 'bearer' }, access: 'all' } as const;

test('files of systemd are secrets of relays, and a bad one is named in the log', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-credentials-'));
  try {
    await writeFile(join(directory, 'gnt-relay.api'), 'from-a-file\n');
    await writeFile(join(directory, 'gnt-relay.short'), 'x');
    await writeFile(join(directory, 'gnt-relay.two'), 'first-line\nsecond-line\n');
    await writeFile(join(directory, 'other'), 'not-of-a-relay');
    const bad: unknown[] = [];
    const logger: Logger = { ...silentLogger, error: (_event, fields) => void bad.push(fields) };
    const secrets = new RelaySecrets();
    await secrets.load(directory, logger);
    const found = secrets.find('api', URL);
    assert.equal(found && reveal(found), 'from-a-file');
    assert.deepEqual(bad, [{ file: 'gnt-relay.short' }, { file: 'gnt-relay.two' }]);
    assert.equal(secrets.find('short', URL), undefined);
    secrets.keepOnly({});
    assert.ok(secrets.find('api', 'https://other.example.com'), 'bound to its name only');
    assert.equal(inspect(secrets, { depth: 9, showHidden: true }).includes('from-a-file'), false);
  } finally {
    await rm(directory, { recursive: true });
  }
  await new RelaySecrets().load(undefined, silentLogger);
  await new RelaySecrets().load(directory, silentLogger);
});

test('a given secret ends with its relay, and with its server', () => {
  const secrets = new RelaySecrets();
  secrets.give('api', URL, 'secret-value');
  secrets.keepOnly({ api: { ...relay, url: 'https://api.example.com/v2' } });
  assert.ok(secrets.find('api', URL));
  assert.equal(secrets.find('api', 'https://api.example.com:8443/v1'), undefined);
  assert.equal(secrets.find('api', 'http://api.example.com/v1'), undefined);
  secrets.keepOnly({});
  assert.equal(secrets.find('api', URL), undefined);
});

test('doctor names each relay without a secret and the command that gives it', async () => {
  const examine = async (missing: string[], relays = {}): Promise<readonly DoctorFinding[]> => {
    // Other parts are not examined.
    const parts = {
      records: { clusters: { load: async () => ({ relays }) } },
      guests: { relays: { listMissing: () => missing } },
    } as unknown as NodeParts;
    return [await checkRelays(parts)].flat();
  };
  assert.deepEqual(await examine([]), []);
  assert.equal((await examine([], { api: relay }))[0]?.level, 'ok');
  const [missing] = await examine(['api'], { api: relay });
  assert.equal(missing?.level, 'warning');
  assert.equal(missing?.hint, 'gnt-cluster set-relay-secret api');
});
