import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { type SeededRandom, createSeededRandom } from '../lab/seeded-random.ts';
import { testSeed } from '../lab/test-seed.ts';
import { askRapi } from './api/rapi/ask-rapi.ts';

/**
 * Secrets of random bytes by every way into a real node, to a script that prints them in many ways
 * and fails: they are in no answer, record, log, file or command line.
 */
const NAME = 'odd.example.com';
const PASSWORD = 'password';
const CANARY = 'k3yOfTheGuest5CharactersMore';
const PIECES = ['\0', '\n', '\r', '\t', '\x1b', '\x7f', ' ', "'", '"', '`', '\\', '%00', '$(x)'];
const BYTES = [0x80, 0xff, 0xc3, 0xe2];
const SECRETS = 4;

const pieces = (random: SeededRandom): Buffer[] =>
  Array.from({ length: random.below(4) }, () =>
    random.below(6) === 0 ? Buffer.from([random.pick(BYTES)]) : Buffer.from(random.pick(PIECES)),
  );
function drawSecrets(random: SeededRandom): readonly Buffer[] {
  return Array.from({ length: SECRETS }, () =>
    Buffer.concat([...pieces(random), Buffer.from(CANARY), ...pieces(random)]),
  );
}

let lab: Lab;
let rapiPort = 0;
/** All that any program or interface said. */
const told: string[] = [];

before(async () => {
  lab = await createLab('gnt-odd-secrets');
  const { root } = lab.paths;
  const [osDir = ''] = lab.paths.osSearchPath;
  await writeIndiscreetOs(join(osDir, 'indiscreet'));
  await mkdir(join(root, 'etc/gnt'), { recursive: true });
  const digest = createHash('md5').update(`reader:Ganeti Remote API:${PASSWORD}`).digest('hex');
  await writeFile(join(root, 'etc/gnt/rapi-users'), `reader {HA1}${digest} write\n`, {
    mode: 0o600,
  });
  await lab.startNode('--rapi', '127.0.0.1:0');
  const log = await readFile(join(root, 'noded.log'), 'utf8');
  rapiPort = Number(/"port":(\d+),"event":"rapi\.ready"/.exec(log)?.[1]);
  await command(0, 'gnt-os', 'modify', '--trusted', 'yes', 'indiscreet');
  await command(0, ...add('indiscreet', NAME));
});
after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

const add = (os: string, name: string) =>
  ['gnt-instance', 'add', '-o', os, '-t', 'diskless', '--no-install', '--no-start', name] as const;

/** Its `verify` fails whenever it is given the secret, and prints it as indiscreetly as it can. */
async function writeIndiscreetOs(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'ganeti_api_version'), '20\n');
  await writeFile(join(path, 'parameters.list'), 'key of it\nother too\n');
  for (const name of ['create', 'import', 'export', 'rename'])
    await writeFile(join(path, name), '#!/bin/sh\n', { mode: 0o755 });
  const verify = `#!/bin/bash
[ -n "$OSP_KEY$OSP_OTHER" ] || exit 0
for value in "$OSP_KEY" "$OSP_OTHER"; do
  printf '%s\\n' "$value"; printf '%q\\n' "$value"; printf %s "$value" | base64 -w0; echo
  printf %s "$value" | od -An -tx1 | tr -d ' \\n'; echo
done
exit 3
`;
  await writeFile(join(path, 'verify'), verify, { mode: 0o755 });
}

/** @param status 0, or 2 for a refusal; null: either */
async function command(
  status: number | null,
  program: Parameters<Lab['run']>[0],
  ...args: readonly string[]
): Promise<void> {
  const result = await lab.run(program, args);
  told.push(result.stdout, result.stderr);
  if (status !== null) assert.equal(result.status, status, result.stderr);
  assert.doesNotMatch(result.stderr, /INTERNAL/);
}

/** Bytes as they are: JSON.stringify would mend them. */
function post(body: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath: lab.paths.nodedSocket, path: '/v1/jobs', method: 'POST', agent: false },
      (response) => {
        text(response).then((answer) => resolve(void told.push(answer)), reject);
      },
    );
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

const quoted = (secret: Buffer): Buffer =>
  Buffer.concat([...secret].map((byte) => (byte < 0x80 ? escaped(byte) : Buffer.from([byte]))));
const escaped = (byte: number): Buffer =>
  Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1));

const around = (answer: string, found: string): string =>
  answer.slice(Math.max(0, answer.indexOf(found) - 400), answer.indexOf(found) + 200);

test('random bytes as secrets are told nowhere, whatever they are refused for', async (t) => {
  const secrets = drawSecrets(createSeededRandom(testSeed(t)));
  const file = join(lab.paths.root, 'given');
  for (const secret of secrets) {
    for (const [opcode, field] of [
      ['INSTANCE_SET_PARAMS', 'osParametersSecret'],
      ['INSTANCE_STARTUP', 'osParametersSecret'],
      ['INSTANCE_SET_PARAMS', 'osParametersPrivate'],
      ['INSTANCE_REINSTALL', 'personalizationPassword'],
    ]) {
      const value = field === 'personalizationPassword' ? ['"', '"'] : ['{"key": "', '"}'];
      const head = `{"opcode": "${opcode}", "name": "${NAME}", "${field}": ${value[0]}`;
      await post(Buffer.concat([Buffer.from(head), quoted(secret), Buffer.from(`${value[1]}}`)]));
    }
    const { body } = await askRapi(
      { port: rapiPort, certificateFile: join(lab.paths.root, 'etc/gnt/rapi.pem') },
      `/2/instances/${NAME}/modify`,
      {
        ...{ method: 'PUT', user: 'reader', password: PASSWORD },
        body: JSON.stringify({ osparams_secret: { other: secret.toString() } }),
      },
    );
    told.push(JSON.stringify(body));
  }
  for (const secret of secrets.slice(0, 2)) {
    await writeFile(file, secret);
    await command(null, 'gnt-instance', 'modify', '--os-parameters-secret', `key=@${file}`, NAME);
    await command(null, 'gnt-instance', 'startup', '--os-parameters-secret', `key=@${file}`, NAME);
  }
  await writeFile(file, '');
  const ofJobs = await askRapi(
    { port: rapiPort, certificateFile: join(lab.paths.root, 'etc/gnt/rapi.pem') },
    '/2/jobs?bulk=1',
    { user: 'reader', password: PASSWORD },
  );
  told.push(JSON.stringify(ofJobs.body));
  await command(0, 'gnt-job', 'list', '--json');
  assert.ok(
    told.some((answer) => answer.includes('OS validation script failed')),
    told.join('\n'),
  );
  const canary = CANARY.slice(0, 20);
  const forms = [canary, Buffer.from(canary).toString('hex'), 'azN5T2ZUaGVHdWVzd'];
  for (const answer of told)
    for (const form of forms) assert.ok(!answer.includes(form), around(answer, form));
  assert.deepEqual(await findSecret(canary, lab.paths.root, (path) => path === file), []);
});

test('nothing that was given so is a bug to the daemon', async () => {
  const log = await readFile(join(lab.paths.root, 'noded.log'), 'utf8');
  assert.deepEqual(
    log.split('\n').filter((line) => line.includes('unexpected')),
    [],
  );
});
