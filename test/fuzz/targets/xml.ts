import assert from 'node:assert/strict';
import { readXml, textAt, type XmlElement } from '../../../noded/instances/identity/read-xml.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

const NAMES = ['Credentials', 'AccessKeyId', 'a', 'x:y', '_', 'Result'];
const TEXTS = [
  '',
  ' ',
  'ASIA1',
  '&amp;amp;lt;',
  '&lt;&#65;&#x1F600;&gt;',
  'é\u2028',
  ']]>',
  '&#10;',
];
const BETWEEN = ['', '\n  ', '<!-- a-b -->', '<?xml version="1.0"?>'];
const ATTRIBUTES = ['', ' xmlns="https://example.com/"', " a='b' c='d'", '\n'];
const MAX_DEPTH = 5;

/** Checks the reader of answers of an STS: accepted text is the same after writing it again. */
export function xmlTarget(read: typeof readXml = readXml): Target {
  return {
    name: 'xml',
    generate,
    open: () => openPure((input) => check(input.toString('utf8'), read)),
  };
}

function generate(random: SeededRandom): Buffer {
  const bytes = Buffer.from(random.pick(BETWEEN) + element(random, 0) + random.pick(BETWEEN));
  return random.below(4) === 0 ? bytes : mutate(bytes, random);
}

function element(random: SeededRandom, depth: number): string {
  const [name, attributes] = [random.pick(NAMES), random.pick(ATTRIBUTES)];
  if (random.below(8) === 0) return `<${name}${attributes}/>`;
  const isLeaf = depth === MAX_DEPTH || random.below(3) === 0;
  const content = isLeaf
    ? random.pick(TEXTS)
    : Array.from(
        { length: 1 + random.below(3) },
        () => random.pick(BETWEEN) + element(random, depth + 1),
      ).join('');
  return `<${name}${attributes}>${content}</${name}>`;
}

function check(text: string, read: typeof readXml): void {
  const found = read(text);
  if (found === undefined) return;
  assert.deepEqual(read(write(found)), found);
  const [first] = found.elements;
  const isOnly = found.elements.filter(({ name }) => name === first?.name).length === 1;
  if (first !== undefined && isOnly && first.elements.length === 0)
    assert.equal(textAt(found, first.name), first.text);
}

function write({ name, text, elements }: XmlElement): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<${name}>${elements.length === 0 ? escaped : elements.map(write).join('')}</${name}>`;
}
