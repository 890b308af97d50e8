export function wordsOf(text: string): readonly string[] {
  return text.split(/\p{White_Space}+/u).filter((word) => word !== '');
}

/** Capitalizes each word. Words consist of letters, digits and _. */
export function titleCase(text: string): string {
  return text.replace(
    /(^|[\0-/:-@[-^`{-\x7f]|\p{White_Space})(\p{L})/gu,
    (_all, before: string, letter: string) => before + letter.toUpperCase(),
  );
}

export function swapCase(text: string): string {
  return [...text]
    .map((each) => (/\p{Lu}|\p{Lt}/u.test(each) ? each.toLowerCase() : each.toUpperCase()))
    .join('');
}

/** Capitalizes each word and removes separators, except leading ones. */
export function camelCase(text: string): string {
  const words = text.split(/[_\s-]/u);
  const first = words.findIndex((word) => word !== '');
  if (first < 0) return text;
  const lead = text.slice(0, first);
  return lead + words.map((word) => upperFirst(word.toLowerCase())).join('');
}

function upperFirst(word: string): string {
  const [first = '', ...others] = word;
  return first.toUpperCase() + others.join('');
}

/** Shortens a text to a width that includes the dots. */
export function abbreviate(width: number, text: string): string {
  return width < 4 ? text : abbreviateBoth(0, width, text);
}

export function abbreviateBoth(left: number, right: number, text: string): string {
  if (right < 4 || (left > 0 && right < 7)) return text;
  const bytes = Buffer.from(text);
  const length = bytes.length;
  if (length <= right) return text;
  const offset = Math.min(left, length, length - left < right - 3 ? length - (right - 3) : left);
  if (offset <= 4) return `${bytes.subarray(0, right - 3).toString()}...`;
  if (offset + right - 3 < length)
    return `...${abbreviateBoth(0, right - 3, bytes.subarray(offset).toString())}`;
  return `...${bytes.subarray(length - (right - 3)).toString()}`;
}

/** Wraps lines at a width in bytes. @param cutsWords whether longer words are cut */
export function wrapText(text: string, width: number, newLine: string, cutsWords: boolean): string {
  const bytes = Buffer.from(text);
  const limit = Math.max(1, width);
  const lines: string[] = [];
  let at = 0;
  while (bytes.length - at > limit) {
    if (bytes[at] === 0x20) {
      at += 1;
      continue;
    }
    const space = bytes.subarray(at, at + limit + 1).lastIndexOf(0x20);
    const next = space >= 0 ? at + space : nextBreak(bytes, at + limit, cutsWords);
    if (next < 0) {
      lines.push(bytes.subarray(at).toString());
      return lines.join(newLine);
    }
    lines.push(bytes.subarray(at, next).toString());
    at = bytes[next] === 0x20 && (space >= 0 || !cutsWords) ? next + 1 : next;
  }
  return [...lines, bytes.subarray(at).toString()].join(newLine);
}

function nextBreak(bytes: Buffer, from: number, cutsWords: boolean): number {
  return cutsWords ? from : bytes.indexOf(0x20, from);
}
