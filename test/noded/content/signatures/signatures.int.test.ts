import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { ImageKeys } from '#shared/contract/image-keys.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import { readThrough } from '../../../../noded/content/signatures/content-check.ts';
import { readArmor } from '../../../../noded/content/signatures/armor.ts';
import { parseImageKey } from '../../../../noded/content/signatures/parse-image-key.ts';
import { parseOpenpgpSignature } from '../../../../noded/content/signatures/gpgv.ts';
import { createSignatures } from '../../../../noded/content/signatures/signatures.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const fixture = (name: string): Buffer =>
  readFileSync(join(import.meta.dirname, '../../../../fixtures/signatures', name));
const content = fixture('content');
const { signal } = new AbortController();
let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-sign-'));
});
after(async () => {
  // Keys and signatures have no names once they are open.
  assert.deepEqual(await readdir(join(dir, 'run')), []);
  await rm(dir, { recursive: true });
});

const keysOf = (...names: readonly string[]): ImageKeys =>
  Object.fromEntries(names.map((name) => [name, parseImageKey(name, fixture(name).toString())]));

function signaturesWith(keys: ImageKeys) {
  return createSignatures({
    loadKeys: () => Promise.resolve(keys),
    limits: () => Promise.resolve(downloadLimitsOf({})),
    netrcFile: join(dir, 'no-netrc'),
    gpgv: { users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID), dir: join(dir, 'run') },
  });
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, 3);
  yield bytes.subarray(3);
}

/** Judges a content with these files beside it, at its own path. */
async function judge(
  keys: readonly string[],
  beside: Readonly<Record<string, string | Buffer>>,
  bytes = content,
): Promise<string> {
  const place = await mkdtemp(join(dir, 'case-'));
  for (const [suffix, file] of Object.entries(beside)) {
    const written = typeof file === 'string' ? fixture(file) : file;
    await writeFile(join(place, `web.tgz${suffix}`), written);
  }
  try {
    const check = await signaturesWith(keysOf(...keys)).checkOf(join(place, 'web.tgz'), { signal });
    if (check === null) return 'not asked for';
    await readThrough(chunksOf(bytes), [check], signal);
    return 'counts';
  } catch (error) {
    assert.ok(isAppError(error, 'SIGNATURE_INVALID') && error.hint !== undefined, String(error));
    return error.message;
  }
}

test('signatures are required only when a key is configured', async () => {
  assert.equal(await judge([], {}), 'not asked for');
  assert.match(await judge(['release.pub'], {}), /has no signature file \(\.minisig: /);
  assert.match(await judge(['release.key.asc'], {}), /\.asc: .*\.sig: .*\.gpg: /);
  // The existing signature is of a kind without a configured key.
  assert.match(await judge(['release.pub'], { '.asc': 'release.asc' }), /has no signature/);
});

test('a signature of a configured key is valid, of minisign and of OpenPGP', async () => {
  assert.equal(
    await judge(['other.pub', 'release.pub'], { '.minisig': 'release.minisig' }),
    'counts',
  );
  assert.equal(await judge(['release.key.asc'], { '.asc': 'release.asc' }), 'counts');
  assert.equal(
    await judge(['other.key.asc', 'release.key.asc'], { '.sig': 'release.sig' }),
    'counts',
  );
  const both = ['release.pub', 'release.key.asc'];
  assert.equal(await judge(both, { '.gpg': 'release.sig' }), 'counts');
});

test('a valid signature names its key among the configured ones, an invalid one names none', async () => {
  const place = await mkdtemp(join(dir, 'named-'));
  const source = join(place, 'web.tgz');
  for (const suffix of ['minisig', 'asc'])
    await writeFile(`${source}.${suffix}`, fixture(`release.${suffix}`));
  const keysFor = async (kind: 'pub' | 'key.asc', bytes: Buffer): Promise<readonly string[]> => {
    const found: string[] = [];
    const signatures = signaturesWith(keysOf(`other.${kind}`, `release.${kind}`));
    const check = await signatures.checkOf(source, { signal }, (key) => found.push(key));
    assert.ok(check);
    await readThrough(chunksOf(bytes), [check], signal).catch((error: unknown) =>
      assert.ok(isAppError(error, 'SIGNATURE_INVALID')),
    );
    return found;
  };
  const { 'release.pub': minisign } = keysOf('release.pub');
  assert.ok(minisign?.kind === 'minisign');
  assert.deepEqual(await keysFor('pub', content), [`minisign:${minisign.publicKey}`]);
  // As `gpg --show-keys` prints it.
  const fingerprint = 'A538417CAFF5DC865932932A779911021E8C9F97';
  assert.deepEqual(await keysFor('key.asc', content), [`openpgp:${fingerprint}`]);
  const other = Buffer.from('what is not signed');
  assert.deepEqual([...(await keysFor('pub', other)), ...(await keysFor('key.asc', other))], []);
});

test('a signature of another key or content is not valid, and the error has the reason', async () => {
  const other = Buffer.from('what is not signed\n');
  const keys = ['release.pub', 'release.key.asc'];
  assert.match(
    await judge(keys, { '.minisig': 'other.minisig' }),
    /key [0-9A-F]{16}, which is not/,
  );
  assert.match(await judge(keys, { '.minisig': 'release.minisig' }, other), /signs other content/);
  assert.match(await judge(keys, { '.asc': 'release.asc' }, other), /signs other content/);
  assert.match(
    await judge(['other.key.asc'], { '.asc': 'release.asc' }),
    /key [0-9A-F]{16}, which/,
  );
  assert.match(
    await judge(['other.key.asc'], { '.asc': 'release.asc' }, other),
    /which is not configured/,
  );
});

test('content with an unknown and a valid signature file is accepted', async () => {
  const keys = ['release.pub', 'release.key.asc'];
  const unsigned = Buffer.from('what is not signed\n');
  for (const foreign of ['other.minisig', unsigned]) {
    const both = { '.minisig': foreign, '.asc': 'release.asc' };
    assert.equal(await judge(keys, both), 'counts');
    assert.match(await judge(keys, both, unsigned), /\.asc is not valid: .*other content/);
  }
  // Also of one kind, in any search order.
  const twice = { '.asc': 'expired.asc', '.gpg': 'release.sig' };
  assert.equal(await judge(['release.key.asc'], twice), 'counts');
  assert.match(
    await judge(['release.key.asc'], twice, unsigned),
    /\.asc is not valid: .*not configured/,
  );
  // When none is valid, the first reason is reported.
  const both = { '.minisig': 'release.minisig', '.asc': 'release.asc' };
  assert.match(await judge(keys, both, unsigned), /\.minisig is not valid: .*other content/);
});

test('a signature file with signatures of a configured and another key is accepted, in any order', async () => {
  const own = fixture('release.sig');
  const foreign = parseOpenpgpSignature(fixture('expired.asc'));
  for (const both of [Buffer.concat([own, foreign]), Buffer.concat([foreign, own])]) {
    assert.equal(await judge(['release.key.asc'], { '.sig': both }), 'counts');
    const other = Buffer.from('another content');
    assert.match(await judge(['release.key.asc'], { '.sig': both }, other), /signs other content/);
    assert.match(await judge(['other.key.asc'], { '.sig': both }), /by the key .* not configured/);
    const named = ['release.key.asc', 'expired.key.asc'];
    assert.match(await judge(named, { '.sig': both }), /expired/, 'named, and no longer good');
  }
});

test('a signature file with other packets is not valid', async () => {
  const message = readArmor(fixture('inline.asc').toString(), 'MESSAGE');
  const foreign = parseOpenpgpSignature(fixture('expired.asc'));
  assert.ok(message);
  for (const first of [fixture('release.sig'), foreign])
    for (const bytes of [content, Buffer.from('what is not signed')])
      assert.match(
        await judge(['release.key.asc'], { '.sig': Buffer.concat([first, message]) }, bytes),
        /not a detached OpenPGP signature/,
      );
});

test('a signature that is expired, malformed, not detached or over SHA-1 is not valid', async () => {
  assert.match(await judge(['expired.key.asc'], { '.asc': 'expired.asc' }), /expired/);
  assert.match(
    await judge(['release.key.asc'], { '.asc': 'sha1.asc' }),
    /is not valid: gpgv reports/,
  );
  assert.match(
    await judge(['release.key.asc'], { '.asc': 'inline.asc' }),
    /not a detached OpenPGP signature/,
  );
  for (const junk of [
    '',
    'junk',
    '\x88',
    '\x88\xff\xff\xff',
    '-----BEGIN PGP SIGNATURE-----\n\n!!\n-----END PGP SIGNATURE-----',
  ])
    assert.match(
      await judge(['release.key.asc'], { '.asc': Buffer.from(junk, 'latin1') }),
      /is not valid: /,
    );
  const long = Buffer.alloc(100_000);
  assert.match(await judge(['release.key.asc'], { '.asc': long }), /more than 65536 bytes/);
});

test('a text-mode signature is not valid', async () => {
  const beside = { '.asc': 'text.asc' };
  const crlf = Buffer.from(content.toString().replaceAll('\n', '\r\n'));
  for (const bytes of [content, crlf])
    assert.match(await judge(['text.key.asc'], beside, bytes), /it is a text-mode signature/);
});

test('a signature is downloaded from the server of its content, with the same login', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? 'nobody'}`);
    if (request.url === '/web.tgz.minisig?v=1') response.end(fixture('release.minisig'));
    else response.writeHead(404).end();
  });
  const port = await listenOnLoopback(server);
  try {
    const source = `http://127.0.0.1:${port}/web.tgz?v=1`;
    const login = { user: 'joe', password: new Secret('pw') };
    const check = await signaturesWith(keysOf('release.pub')).checkOf(source, { ...login, signal });
    assert.ok(check);
    await readThrough(chunksOf(content), [check], signal);
    const basic = `Basic ${Buffer.from('joe:pw').toString('base64')}`;
    assert.deepEqual(asked, [`/web.tgz.minisig?v=1 ${basic}`]);
  } finally {
    server.close();
  }
});

test('a check of content that ends early fails', async () => {
  const place = await mkdtemp(join(dir, 'case-'));
  await writeFile(join(place, 'web.tgz.asc'), fixture('release.asc'));
  const signatures = signaturesWith(keysOf('release.key.asc'));
  const check = await signatures.checkOf(join(place, 'web.tgz'), { signal });
  assert.ok(check);
  async function* cut(): AsyncGenerator<Buffer> {
    yield content;
    throw new Error('cut');
  }
  await assert.rejects(readThrough(cut(), [check], signal), { message: 'cut' });
  await assert.rejects(async () => check.finish());
});

test('a malformed or secret key is refused by its name', () => {
  const refuses = (text: string, pattern: RegExp): void => {
    assert.throws(() => parseImageKey('mine', text), {
      code: 'VALIDATION',
      message: pattern,
    });
  };
  refuses('', /image key 'mine': neither a minisign nor an OpenPGP public key/);
  refuses('-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAA==\n', /secret key/);
  refuses('untrusted comment: minisign encrypted secret key\nRWRTY0Iy\n', /secret key/);
  refuses(
    '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!\n-----END PGP PUBLIC KEY BLOCK-----',
    /base64/,
  );
});
