import { readYaml } from '#shared/yaml/read-yaml.ts';
import { isNode, isScalar, visit } from 'yaml';

/** Makes the error for a reason, which never contains text of the document. */
export type Refusal = (reason: string, hint?: string) => Error;

/** YAML's null, unquoted and without a tag. */
const NOTHING = /^(~|null|Null|NULL)$/;

/**
 * Parses YAML with scalars as written; null is an empty text. The library limits aliases.
 * @throws errors of `refuse`
 */
export function parsePlainYaml(text: string, refuse: Refusal): unknown {
  const read = readYaml(text, {
    schema: 'failsafe',
    merge: true,
    // The library would print parts of the document on the console.
    logLevel: 'error',
  });
  if ('problem' in read) throw refuse(read.problem.reason, read.problem.hint);
  const { document } = read;
  visit(document, {
    Scalar: (at, scalar) => {
      const { type, tag, value } = scalar;
      const isNothing = type === 'PLAIN' && tag === undefined && NOTHING.test(String(value));
      if (at !== 'key' && isNothing) scalar.value = '';
    },
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '__proto__')
        throw refuse('the key "__proto__" is not allowed');
    },
    Alias: (_, { source }, path) => {
      if (path.some((node) => isNode(node) && 'anchor' in node && node.anchor === source))
        throw refuse('an alias refers to itself');
    },
  });
  try {
    return document.toJS() ?? '';
  } catch {
    // Too many or undefined aliases; the library's message would contain a name.
    throw refuse('cannot resolve its aliases');
  }
}
