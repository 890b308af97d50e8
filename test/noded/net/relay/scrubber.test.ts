import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '#shared/secret/secret.ts';
import { createCredential } from '../../../../noded/net/relay/credential.ts';
import { Scrubber } from '../../../../noded/net/relay/scrubber.ts';
import { fc } from '../../../lab/fast-check.ts';

function scrub(
  needles: readonly string[],
  chunks: readonly string[],
  scrubber = new Scrubber(needles),
): string {
  const parts = chunks.map((chunk) => scrubber.push(Buffer.from(chunk, 'latin1')));
  return Buffer.concat([...parts, scrubber.end()]).toString('latin1');
}

/** The plain definition: each place of each needle, in the whole text. */
function scrubWhole(needles: readonly string[], text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  const masked = Buffer.from(bytes);
  for (const needle of needles)
    for (let at = 0; at <= text.length - needle.length; at += 1)
      if (text.startsWith(needle, at)) masked.fill('*', at, at + needle.length);
  return masked.toString('latin1');
}

test('no split of a text into chunks lets a needle through', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 6 });
  const cases = fc.tuple(
    fc.array(letters, { minLength: 1, maxLength: 4 }),
    fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 }), { maxLength: 8 }),
  );
  fc.assert(
    fc.property(cases, ([needles, chunks]) => {
      const scrubber = new Scrubber(needles);
      for (const stream of [chunks, chunks.toReversed()])
        assert.equal(scrub(needles, stream, scrubber), scrubWhole(needles, stream.join('')));
    }),
    { numRuns: 3000 },
  );
});

test('a chunk that cannot begin a needle passes at once', () => {
  const scrubber = new Scrubber(['secret-value']);
  assert.equal(scrubber.push(Buffer.from('data: 1\n\n')).toString(), 'data: 1\n\n');
  assert.equal(scrubber.push(Buffer.from('a secr')).toString(), 'a ');
  assert.equal(scrubber.push(Buffer.from('ecy\n')).toString(), 'secrecy\n');
});

test('a long secret has few forms, so that answers stay fast', () => {
  for (const length of [8, 50, 512, 4096]) {
    const secret = new Secret('kQ4z/Rt+'.repeat(512).slice(0, length));
    const { forms } = createCredential({ kind: 'bearer' }, secret);
    assert.ok(forms.length < 40, `${forms.length} forms of ${length} characters`);
  }
});

test('a credential is hidden in the forms in which servers echo it', () => {
  const value = 'p+/w rd&"x"=4%2\\end';
  const { forms } = createCredential({ kind: 'basic', user: 'me' }, new Secret(value));
  const login = Buffer.from(`me:${value}`).toString('base64');
  for (const form of [
    ...[
      value,
      encodeURIComponent(value),
      encodeURIComponent(value).toLowerCase(),
      JSON.stringify(value),
    ],
    ...[
      `Basic ${login}`,
      Buffer.from(value).toString('hex'),
      Buffer.from(value).toString('base64url'),
    ],
    ...[Buffer.from(`xy${value}`).toString('base64'), JSON.stringify({ value })],
  ]) {
    const shown = scrub(forms, [...`before ${form} after`]);
    assert.ok(shown.includes('****'), shown);
    assert.equal(shown.length, `before ${form} after`.length);
  }
});
