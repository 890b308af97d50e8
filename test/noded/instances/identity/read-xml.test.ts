import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readXml, textAt } from '../../../../noded/instances/identity/read-xml.ts';

test('an answer with declaration, comments, attributes and entities is read', () => {
  const text = [
    '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a-b -- is not allowed, a-b is -->',
    '<A xmlns="urn:x" b=\'c\'>\n <B><C>&lt;&#65;&#x42;&amp;&gt;</C><D/><E f="g"/></B>\n</A>\n',
  ];
  const root = readXml(text.join('').replace(' -- is not allowed,', ''));
  assert.equal(textAt(root, 'B/C'), '<AB&>');
  assert.equal(textAt(root, 'B/D'), '');
  assert.equal(textAt(root, 'B/X'), undefined);
  assert.equal(textAt(root, 'B'), undefined, 'an element with elements');
});

test('an element that occurs twice has no text', () => {
  assert.equal(textAt(readXml('<a><b>1</b><b>2</b></a>'), 'b'), undefined);
});

for (const text of [
  '',
  'text',
  '<a>',
  '</a>',
  '<a></b>',
  '<a></a><b></b>',
  '<a></a>text',
  '<a></a b="c">',
  '<a></a/>',
  '<a>&unknown;</a>',
  '<a>& </a>',
  '<a>&#0;</a>',
  '<a>&#x110000;</a>',
  '<a>&__proto__;</a>',
  '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
  '<a><![CDATA[b]]></a>',
  '<a b="<"></a>',
  '<a'.repeat(10),
  `${'<a>'.repeat(17)}${'</a>'.repeat(17)}`,
  `<a>${'<b/>'.repeat(600)}</a>`,
])
  test(`XML is refused: ${text.slice(0, 40)}`, () => {
    assert.equal(readXml(text), undefined);
  });

test('a long hostile text is read in linear time', () => {
  for (const part of ['<!--', '<a ', '&', '<?', '-', '<a>&#1']) {
    const startedAtMs = performance.now();
    readXml(`<a>${part.repeat(65_536 / part.length)}`);
    assert.ok(performance.now() - startedAtMs < 1000, part);
  }
});
