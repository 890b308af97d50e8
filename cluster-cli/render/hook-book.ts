import type { HookBook } from '#shared/contract/hook-book.ts';
import { renderOutline } from './outline.ts';
import { sanitizeLine } from './sanitize.ts';

/** Returns hooks in their order: by stage, each step with its document and its fields. */
export function renderHookBook({ stages, remarks }: HookBook): readonly string[] {
  const outline = stages.map(({ stage, steps }) => ({
    key: stage,
    children: steps.map(({ label, file, fields }) => ({
      key: `${file}, ${label}`,
      value: fields.join(', '),
    })),
  }));
  return [...renderOutline(outline), ...remarks.map((line) => `(${sanitizeLine(line)})`)];
}
