import { readYaml } from '#shared/yaml/read-yaml.ts';
import { isNode, isScalar, visit } from 'yaml';

/** Makes the error for a reason, which never repeats what the document holds. */
export type Refusal = (reason: string, hint?: string) => Error;

/** What YAML has for nothing, where it stands without quotes and tag. */
const NOTHING = /^(~|null|Null|NULL)$/;

/**
 * YAML with all scalars as they are written; what is nothing is an empty text. Aliases are bounded
 * by the library.
 * @throws what `refuse` makes
 */
export function parsePlainYaml(text: string, refuse: Refusal): unknown {
  const read = readYaml(text, {
    schema: 'failsafe',
    merge: true,
    // The library would print parts of the document, on the console.
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
    // Too many aliases, or one of something that is not there; the message would repeat its name.
    throw refuse('cannot resolve its aliases');
  }
}
