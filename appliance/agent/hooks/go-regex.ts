import { ownValue } from '#shared/json/own-value.ts';

/** Groups of Go's expressions that have another name, or none, in this language. */
const posixClasses: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  blank: '\\t ',
  digit: '0-9',
  lower: 'a-z',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '\\w',
  xdigit: '0-9A-Fa-f',
};

/**
 * Compiles a regular expression as Go has them (RE2): flags in front as `(?i)`, named groups as
 * `(?P<name>…)`, classes as `[[:alpha:]]`, and neither look-around nor back references.
 * @throws Error when Go would not compile it, or when it is not translated
 */
export function compileGoRegex(source: string): RegExp {
  const [, flags = '', body = ''] = /^(?:\(\?([ims]+)\))?([^]*)$/.exec(source) ?? [];
  // What is escaped is looked at as a pair, so that `\\1` is no reference and `\(?=` no group.
  const translated = body.replace(
    /\\[^]|\(\?[^:]?[^]?|\[:\^?\w+:\]/g,
    (token: string) => translate(token) ?? refuse(),
  );
  return new RegExp(translated, flags);
}

/** Null for what has no translation. */
function translate(token: string): string | null {
  if (token.startsWith('\\')) {
    if (token === '\\A') return '^';
    if (token === '\\z') return '$';
    return /[1-9QEkKCpPZ]/.test(token[1] ?? '') ? null : token;
  }
  if (token.startsWith('[:')) {
    const className = ownValue(posixClasses, token.slice(2, -2));
    return className ?? null;
  }
  if (token === '(?P<') return '(?<';
  return /^\(\?(:|[ims]:$|<[A-Za-z_]$)/.test(token) ? token : null;
}

function refuse(): never {
  throw new Error('unknown expression');
}
