import { formatEach, formatPlain, MAX_TEXT_LENGTH, type Spend } from './format-each.ts';
import { formatVerb, parseDirectives } from './format-verbs.ts';
import { CallError } from './template-error.ts';
import type { Value } from './values.ts';

/** Implements fmt.Sprint: a space between two operands when neither is text. */
export function formatPrint(values: readonly Value[], spend: Spend): string {
  return values
    .map((value, index) => {
      const before = values[index - 1];
      const isSpaced = index > 0 && typeof value !== 'string' && typeof before !== 'string';
      return (isSpaced ? ' ' : '') + formatEach(value, spend, formatPlain);
    })
    .join('');
}

export function formatPrintln(values: readonly Value[], spend: Spend): string {
  return `${values.map((value) => formatEach(value, spend, formatPlain)).join(' ')}\n`;
}

/** Implements fmt.Sprintf, its complaints in the text included. */
export function formatPrintf(format: string, values: readonly Value[], spend: Spend): string {
  const out: string[] = [];
  let length = 0;
  let next = 0;
  const take = (): Value | undefined => values[next++];
  for (const part of parseDirectives(format)) {
    const text = typeof part === 'string' ? part : formatVerb(part, take, spend);
    length += text.length;
    spend(1 + (text.length >> 8));
    if (length > MAX_TEXT_LENGTH) throw new CallError('the result of printf is too long');
    out.push(text);
  }
  if (next < values.length) {
    const extra = values
      .slice(next)
      .map((value) =>
        formatVerb({ verb: 'extra', flags: '', width: null, precision: null }, () => value, spend),
      );
    out.push(`%!(EXTRA ${extra.join(', ')})`);
  }
  return out.join('');
}
