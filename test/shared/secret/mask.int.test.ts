import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { fc } from '../../lab/fast-check.ts';
import { plainText } from '#shared/text/plain-text.ts';
import { canBeMasked, createMask, createMaskInTurns } from '#shared/secret/mask.ts';
import { cleanLine } from '#shared/text/lines.ts';
import { threadMs, threadStretches } from '../../lab/thread-time.ts';

test('replaces every occurrence of every value', () => {
  const mask = createMask(['hunter2', 'swordfish']);
  assert.equal(mask('hunter2 or swordfish or hunter2'), '<redacted> or <redacted> or <redacted>');
});

test('masks the longer of two values that contain each other, so that it was removed completely', () => {
  assert.equal(createMask(['pass', 'password-1'])('password-1 pass'), '<redacted> <redacted>');
});

test('masks each line of a value of several lines', () => {
  const key = '-----BEGIN KEY-----\nMIIEpAIBAAKC\nq3dXk2\n-----END KEY-----\n';
  const mask = createMask([key]);
  assert.equal(mask('read MIIEpAIBAAKC'), 'read <redacted>');
  assert.equal(mask('q3dXk2'), '<redacted>');
});

test('masks the lines of a value that was written with carriage returns', () => {
  assert.equal(createMask(['first-line\r\nsecond-line\r\n'])('first-line!'), '<redacted>!');
});

test('masks both parts of a value that has a NUL byte, which C programs end at', () => {
  const mask = createMask(['before-the-end\0behind-it']);
  assert.equal(mask('before-the-end'), '<redacted>');
  assert.equal(mask('behind-it'), '<redacted>');
});

test('masks a value with control characters as a log shows what a script prints', () => {
  const value = 'a\x1b[31mk3y\x7f\u202eend';
  const mask = createMask([value]);
  assert.equal(mask(cleanLine(`it is ${value}`)), 'it is <redacted>');
  assert.equal(mask(plainText(`it is ${value}`)), 'it is <redacted>');
});

test('masks a value as the messages of Node show an argument', () => {
  for (const value of ["it's a\0secret", 'se"cr\'et\x85\n', 'back\\slash`\'"\x1b'])
    assert.equal(
      createMask([value])(`Received ${inspect(value)}`).replaceAll(/['"`]/g, ''),
      'Received <redacted>',
      inspect(value),
    );
});

test('masks a value that is shown without the blanks around it', () => {
  assert.equal(createMask(['  padded-secret\t\n'])('padded-secret'), '<redacted>');
});

test('leaves ordinary text alone when a value is too short to tell', () => {
  assert.equal(createMask(['yes', '', '1'])('yes, 1 of 11'), 'yes, 1 of 11');
});

test('takes values literally, whatever they mean to a regular expression', () => {
  assert.equal(createMask(['a.c$(x)*'])('abc a.c$(x)*'), 'abc <redacted>');
});

test('no value of four characters or more, blanks around it aside, survives in any text', () => {
  const value = fc
    .string({ minLength: 4, maxLength: 12 })
    .filter((text) => text.trim().length >= 4 && !'<redacted>'.includes(text.trim()));
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), fc.string(), (values, noise) => {
      const masked = createMask(values)(values.join(noise));
      const left = masked.replaceAll('<redacted>', '\u0000');
      for (const one of values) assert.ok(!left.includes(one), `${one} in ${left}`);
    }),
  );
});

test('values that overlap are hidden as a whole', () => {
  assert.equal(createMask(['abcd', 'bcdefgh'])('-abcdefgh-'), '-<redacted>-');
});

const SECRET = `p@ss'w"ord ö/\\$x`;

test('masks a value as JSON, URLs, forms, shells, base64 and hex have it', () => {
  const url = encodeURIComponent(SECRET);
  const forms = {
    json: JSON.stringify({ password: SECRET }).slice(13, -2),
    'json in ASCII': String.raw`p@ss'w\"ord \u00f6/\\$x`,
    'json with slashes': String.raw`p@ss'w\"ord ö\/\\$x`,
    url,
    'url in lower case': url.replaceAll(/%../g, (escape) => escape.toLowerCase()),
    form: new URLSearchParams({ a: SECRET }).toString().slice(2),
    'bash -x': String.raw`p@ss'\''w"ord ö/\$x`,
    'dash -x': `p@ss'"'"'w"ord ö/\\$x`,
    'printf %q': String.raw`p@ss\'w\"ord\ ö/\\\$x`,
    hex: Buffer.from(SECRET).toString('hex'),
  };
  const mask = createMask([SECRET]);
  for (const [what, form] of Object.entries(forms))
    assert.equal(mask(`<${form}>`), '<<redacted>>', `${what}: ${form}`);
});

test('masks a value in base64 at any place of a longer text, down to the bits that others share', () => {
  const mask = createMask([SECRET]);
  for (const encoding of ['base64', 'base64url'] as const) {
    for (const before of ['', 'u:', 'us:', 'usr:', 'user:']) {
      const text = Buffer.from(`${before}${SECRET}, and more`).toString(encoding);
      const left = mask(text);
      const seen = Buffer.from(left.replace('<redacted>', ''), encoding).toString('latin1');
      assert.match(left, /<redacted>/, `${encoding} after '${before}'`);
      assert.doesNotMatch(seen, /ord|@ss/);
    }
  }
});

test('masks every line of a long value in base64, as base64(1) prints it', () => {
  const key = 'k3y '.repeat(100) + SECRET;
  const lines =
    Buffer.from(`${key}\n`)
      .toString('base64')
      .match(/.{1,76}/g) ?? [];
  const mask = createMask([key]);
  assert.ok(lines.length > 5);
  // The last one ends with bits of the line feed.
  for (const line of lines.slice(0, -1)) assert.equal(mask(line), '<redacted>');
});

test('real shells show nothing of a value that they trace', { timeout: 20_000 }, () => {
  const secrets = [SECRET, `it's`, `'quoted'`, 'tab\there', 'two\nlines', 'back\\slash', `a''b''`];
  for (const shell of ['dash', 'bash']) {
    for (const secret of secrets) {
      const script = shell === 'bash' ? ': "$1"; [[ a == "$1" ]]; printf "%q" "$1"' : ': "$1"';
      const { stderr, stdout } = spawnSync(shell, ['-xc', script, '-', secret], {
        stdio: ['ignore', 'pipe', 'pipe'],
        encoding: 'utf8',
        env: { LC_ALL: 'C.UTF-8' },
      });
      const masked = createMask([secret])(stderr + stdout);
      for (const word of secret.split(/[^a-zö]+/).filter((part) => part.length > 2))
        assert.ok(!masked.includes(word), `${shell}: ${word} in ${masked}`);
    }
  }
});

test('a shell without a locale shows nothing of a value that has other characters than ASCII', () => {
  const secret = 'passwörd€ of\tthe guest';
  const { stdout, stderr } = spawnSync('bash', ['-xc', ': "$1"; printf "%q" "$1"', '-', secret], {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    env: {},
  });
  assert.doesNotMatch(createMask([secret])(stderr + stdout), /passw|guest/);
});

test('a log of 8 MiB is masked within the time that reading it takes, whatever the values are', () => {
  const key = Array.from({ length: 60 }, (_, line) => `MIIE${'x'.repeat(60)}${line}`).join('\n');
  const line = 'setting up a package (1.2.3-4) ... MIIE and so on, as a script prints it\n';
  const log = line.repeat(Math.ceil((8 * 2 ** 20) / line.length));
  const mask = createMask([key, SECRET, 'hunter22']);
  const lines = log.split('\n');
  // A ratio, so that a slow machine slows both.
  const plainMs = threadMs(() => lines.forEach((each) => each.replaceAll(/[^ -~]/gu, '?')));
  const maskedMs = threadMs(() => lines.forEach(mask));
  assert.ok(maskedMs < 30 * plainMs, `${maskedMs} ms, a plain replacement ${plainMs} ms`);
});

test('a value of thousands of lines costs no more than one line of its length, and no line is shown', () => {
  const lines = Array.from({ length: 40_000 }, (_, at) => `${at}`.padStart(5, 'x'));
  const value = lines.join('\n');
  const oneMs = threadMs(() => createMask([value.replaceAll('\n', '\t')]));
  const manyMs = threadMs(() => createMask([value]));
  const mask = createMask([value]);
  assert.ok(manyMs < 2 * oneMs, `${manyMs} ms, one line ${oneMs} ms`);
  for (const line of [lines[0], lines[39_999]]) assert.equal(mask(`a ${line}`), 'a <redacted>');
  assert.match(mask(Buffer.from(value).toString('base64')), /^<redacted>=*$/);
});

test('a value of thousands of lines takes no written form from the lines of another value', () => {
  const long = Array.from({ length: 5000 }, (_, at) => `${at}`.padStart(5, 'x')).join('\n');
  const mask = createMask([long, 'BEGIN\nfirst-line\nEND']);
  assert.equal(mask(Buffer.from('first-line').toString('hex')), '<redacted>');
});

test('a mask of many large values does not keep others waiting', async () => {
  const values = Array.from({ length: 8 }, (_, at) => `${at} and '`.repeat(8_000));
  const { allMs, longestMs } = await threadStretches(
    () => createMaskInTurns(values),
    (stretches) => stretches.longestMs < stretches.allMs / 10,
  );
  assert.ok(longestMs < allMs / 10, `${longestMs} ms of ${allMs} ms`);
});

test('a value that was chosen to be nearly printed everywhere costs no more than another', () => {
  const mask = createMask([`${'a'.repeat(4000)}b`, `b${'a'.repeat(4000)}`, 'a'.repeat(3000)]);
  const tookMs = threadMs(() => {
    for (let line = 0; line < 100; line += 1) assert.equal(mask('a'.repeat(8192)), '<redacted>');
    assert.equal(mask(`b${'a'.repeat(2999)}`).length, 3000);
  });
  // Comparing at every place would take 20 s.
  assert.ok(tookMs < 5000, `${tookMs} ms`);
});

test('of a text that is cut nothing is left of a value that begins before the cut', () => {
  const mask = createMask(['hunter2-and-more'], 10);
  assert.equal(mask('12345678hunter2-and-more, and more'), '12345678<r');
  assert.equal(mask('123456789hunter2-and-more'), '123456789<');
  assert.equal(mask('1234567890hunter2-and-more'), '1234567890');
  assert.equal(mask('hunter2-and-more or hunter2-and-more'), '<redacted>');
  assert.equal(mask('123'), '123');
  assert.equal(createMask([], 3)('1234'), '123');
});

test('what is cut off a text costs nothing, however dear the values are to look for', () => {
  const value = Array.from({ length: 600 }, (_, at) => `aaaa${'b'.repeat(at)}c`).join('\n');
  const [whole, cut] = [createMask([value]), createMask([value], 500)];
  const text = 'a'.repeat(16 * 1024);
  const measure = (mask: (text: string) => string): number =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        const startMs = performance.now();
        mask(text);
        return performance.now() - startMs;
      }),
    );
  const [wholeMs, cutMs] = [measure(whole), measure(cut)];
  assert.ok(cutMs < wholeMs / 5, `${cutMs} ms of ${wholeMs} ms`);
});

test('tells which values are too short to be masked', () => {
  assert.deepEqual(['abcd', ' abc ', ''].map(canBeMasked), [true, false, false]);
});
