import { ownValue } from '#shared/json/own-value.ts';

/** An element of an XML document, without attributes, comments and mixed content. */
export interface XmlElement {
  readonly name: string;
  /** Text of an element without elements. */
  readonly text: string;
  readonly elements: readonly XmlElement[];
}

/** Answers of an STS have four levels and a dozen elements. */
const MAX_DEPTH = 16;
const MAX_MARKUP = 512;
/** A tag, a comment or a processing instruction. Attributes may not contain `<` and `>`. */
const MARKUP =
  /<(?:!--[^-]*(?:-[^-]+)*--|\?[^<>]*\?|(?<close>\/)?(?<name>[A-Za-z_][\w.:-]{0,127})(?<attributes>\s[^<>]*?)?(?<empty>\/)?)>/y;
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

interface Open {
  readonly name: string;
  text: string;
  readonly elements: XmlElement[];
}

/** Markup at one place of a document. Without a name it is a comment or an instruction. */
interface Markup {
  readonly end: number;
  readonly name: string | undefined;
  readonly kind: 'open' | 'close' | 'empty';
}

/**
 * Reads the subset of XML that web services send: elements with text, without document types and
 * CDATA, whose expansion could exhaust the memory.
 * @returns the root element; undefined for other text
 */
export function readXml(document: string): XmlElement | undefined {
  const top: Open = { name: '', text: '', elements: [] };
  const open: Open[] = [top];
  let count = 0;
  let at = document.startsWith('\uFEFF') ? 1 : 0;
  while (at < document.length) {
    const start = document.indexOf('<', at);
    const text = readText(document.slice(at, start === -1 ? undefined : start));
    const last = open.at(-1);
    if (text === undefined || last === undefined) return undefined;
    last.text += text;
    if (start === -1) break;
    const markup = readMarkup(document, start);
    count++;
    if (markup === undefined || count > MAX_MARKUP || !apply(open, markup)) return undefined;
    at = markup.end;
  }
  const [root, ...others] = top.elements;
  const isWhole = open.length === 1 && others.length === 0 && top.text.trim() === '';
  return isWhole ? root : undefined;
}

function readMarkup(document: string, start: number): Markup | undefined {
  MARKUP.lastIndex = start;
  const { groups, 0: whole } = MARKUP.exec(document) ?? {};
  if (whole === undefined) return undefined;
  const { name, close, attributes, empty } = groups ?? {};
  if (close !== undefined && (attributes !== undefined || empty !== undefined)) return undefined;
  const kind = close !== undefined ? 'close' : empty !== undefined ? 'empty' : 'open';
  return { name, kind, end: start + whole.length };
}

/** @returns whether the markup fits the open elements */
function apply(open: Open[], { name, kind }: Markup): boolean {
  if (name === undefined) return true;
  if (kind === 'close') {
    const element = open.length > 1 ? open.pop() : undefined;
    if (element?.name !== name) return false;
    open.at(-1)?.elements.push(closed(element));
    return true;
  }
  const element: Open = { name, text: '', elements: [] };
  if (kind === 'empty') open.at(-1)?.elements.push(closed(element));
  else open.push(element);
  return open.length <= MAX_DEPTH;
}

/** Returns the text of the only element at a path below the root, as `A/B`. */
export function textAt(root: XmlElement | undefined, path: string): string | undefined {
  let found = root;
  for (const name of path.split('/')) {
    const [next, ...others] = found?.elements.filter((each) => each.name === name) ?? [];
    found = others.length === 0 ? next : undefined;
  }
  return found?.elements.length === 0 ? found.text : undefined;
}

function closed({ name, text, elements }: Open): XmlElement {
  return { name, elements, text: elements.length === 0 ? text : '' };
}

function readText(text: string): string | undefined {
  let isWhole = true;
  const read = text.replaceAll(
    /&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w{1,8}));|[&>]/g,
    (...found) => {
      const [whole, decimal, hex, name] = found as (string | undefined)[];
      if (whole === '>') return '>';
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
      const character = name === undefined ? characterOf(code) : ownValue(ENTITIES, name);
      if (character === undefined) isWhole = false;
      return character ?? '';
    },
  );
  return isWhole ? read : undefined;
}

/** XML 1.0, 2.2. */
function characterOf(code: number): string | undefined {
  const isAllowed =
    [0x9, 0xa, 0xd].includes(code) ||
    (code >= 0x20 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff);
  return isAllowed ? String.fromCodePoint(code) : undefined;
}
