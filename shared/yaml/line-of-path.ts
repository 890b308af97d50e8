import { type Document, isCollection, isMap, isNode, isScalar } from 'yaml';

/**
 * Returns the line, counted from 1, in which a member of a document begins: its key or its list
 * item. If the document has no such member, the line of the nearest parent; null for an empty
 * document.
 */
export function lineOfPath(
  document: Document.Parsed,
  text: string,
  path: readonly PropertyKey[],
): number | null {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const member of path) {
    if (!isCollection(node)) break;
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(member))
      : undefined;
    const value: unknown = pair === undefined ? node.get(member, true) : pair.value;
    const found = startOf(pair?.key ?? value);
    if (found === null) break;
    offset = found;
    node = value;
  }
  return offset === null ? null : text.slice(0, offset).split('\n').length;
}

function startOf(node: unknown): number | null {
  return isNode(node) && node.range ? node.range[0] : null;
}
