import { ownValue } from '#shared/json/own-value.ts';

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
 * Compiles a regular expression of Go (RE2): leading flags as `(?i)`, named groups as
 * `(?P<name>…)`, classes as `[[:alpha:]]`, without look-around and back references.
 * @throws Error for an expression that Go would refuse, or without a translation
 */
export function compileGoRegex(source: string): RegExp {
  const [, flags = '', body = ''] = /^(?:\(\?([ims]+)\))?([^]*)$/.exec(source) ?? [];
  // An escape is matched as a pair, so that `\\1` is not a reference and `\(?=` not a group.
  const translated = body.replace(
    /\\[^]|\(\?[^:]?[^]?|\[:\^?\w+:\]/g,
    (token: string) => translate(token) ?? refuse(),
  );
  return new RegExp(translated, flags);
}

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
