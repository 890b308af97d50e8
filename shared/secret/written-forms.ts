import { inspect } from 'node:util';
import { plainText } from '../text/plain-text.ts';
import { cleanLine } from '../text/lines.ts';
import { ownValue } from '../json/own-value.ts';

/** Columns at which base64(1) and openssl(1) begin a new line. */
const BASE64_COLUMNS = [76, 64];
/**
 * Characters that bash escapes by a backslash outside of quotes; others than ASCII stay unchanged.
 */
const SHELL_SPECIAL = /[ -~]/g;
const SHELL_PLAIN = /[A-Za-z0-9_.,:=@%/+-]/;

/**
 * Yields the forms in which programs write a value: in JSON, quoted as by a shell's `set -x` or
 * `printf %q`, in a URL or a form, in base64 at any place of a longer text, in hex.
 */
export function* writtenForms(value: string): Generator<string> {
  yield* jsonForms(value);
  yield* cleanedForms(value);
  yield* inspectForms(value);
  yield* shellForms(value);
  yield* urlForms(value.toWellFormed());
  const bytes = Buffer.from(value);
  yield* base64Forms(bytes);
  const hex = bytes.toString('hex');
  yield hex;
  yield hex.toUpperCase();
}

function* jsonForms(value: string): Generator<string> {
  const json = JSON.stringify(value).slice(1, -1);
  yield json;
  yield json.replaceAll('/', String.raw`\/`);
  yield json.replaceAll(/[^\0-\x7f]/g, unicodeEscape);
}

function unicodeEscape(character: string): string {
  return String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Yields the forms in our logs, which clean a script's output before it is masked. */
function* cleanedForms(value: string): Generator<string> {
  yield cleanLine(value);
  yield plainText(value);
}

/** Yields the forms of Node's `util.inspect`, and of its argument errors (`Received '…'`). */
function* inspectForms(value: string): Generator<string> {
  const quoted = inspect(value, { maxStringLength: null, breakLength: Infinity });
  yield quoted.slice(1, -1);
  // Python, and Node inside of single quotes.
  yield quoted.slice(1, -1).replaceAll(/\\?'/g, String.raw`\'`);
}

function* shellForms(value: string): Generator<string> {
  // bash; and dash, which puts quotes into double ones and omits an empty word at the end.
  yield value.replaceAll("'", String.raw`'\''`);
  yield value.replaceAll(/'+/g, `'"$&"'`).replace(/'$/, '');
  yield ansiQuoted(value);
  // In the locale C, which scripts on a node have, other bytes than ASCII are quoted too.
  yield ansiQuoted(value).replaceAll(/[^\0-\x7f]+/gu, octalEscapes);
  yield value.replaceAll(SHELL_SPECIAL, (character) =>
    SHELL_PLAIN.test(character) ? character : `\\${character}`,
  );
  // Within [[ ]] bash shows a quoted word with a backslash before every character.
  yield value.replaceAll(/[^]/gu, String.raw`\$&`);
}

const ANSI_ESCAPES: Readonly<Record<string, string>> = {
  '\x07': 'a',
  '\b': 'b',
  '\x1b': 'E',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
  '\v': 'v',
  '\\': '\\',
  "'": "'",
};

/** Returns the inside of bash's `$'…'`, which it uses for words with control characters. */
function ansiQuoted(value: string): string {
  return [...value]
    .map((character) => {
      const named = ownValue(ANSI_ESCAPES, character);
      if (named !== undefined) return `\\${named}`;
      const isControl = character < ' ' || character === '\x7f';
      return isControl ? `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}` : character;
    })
    .join('');
}

function octalEscapes(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}

function* urlForms(value: string): Generator<string> {
  const component = encodeURIComponent(value);
  const strict = component.replaceAll(/[!'()*]/g, percentEscape);
  for (const form of [component, strict]) {
    for (const encoded of [form, form.replaceAll('%2F', '/'), form.replaceAll('%20', '+')]) {
      yield encoded;
      yield encoded.replaceAll(/%../g, (escape) => escape.toLowerCase());
    }
  }
  yield encodeURI(value);
  yield new URLSearchParams({ '': value }).toString().slice(1);
}

function percentEscape(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function* base64Forms(bytes: Buffer): Generator<string> {
  for (const before of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // Drop characters that share bits with their neighbours.
    const whole = encoded.slice(
      Math.ceil((before * 8) / 6),
      Math.floor(((before + bytes.length) * 8) / 6),
    );
    yield* bothAlphabets(whole);
  }
  const alone = bytes.toString('base64').slice(0, Math.ceil((bytes.length * 8) / 6));
  for (const columns of BASE64_COLUMNS) {
    for (let at = 0; alone.length > columns && at < alone.length; at += columns)
      yield alone.slice(at, at + columns);
  }
}

function* bothAlphabets(encoded: string): Generator<string> {
  yield encoded;
  yield encoded.replaceAll('+', '-').replaceAll('/', '_');
}
