import { ownValue } from '#shared/json/own-value.ts';
import { RapiFailure } from './rapi-failure.ts';

/** Clients send no deeper filters. */
const MAX_DEPTH = 20;

type Matches = (item: Readonly<Record<string, unknown>>) => boolean;

/** A map: an object inherits properties such as `constructor`, which would pass for operators. */
const comparisons: ReadonlyMap<unknown, (order: number) => boolean> = new Map([
  ['<', (order: number) => order < 0],
  ['<=', (order: number) => order <= 0],
  ['>', (order: number) => order > 0],
  ['>=', (order: number) => order >= 0],
]);

/**
 * Parses Ganeti's query filter, a list of operator and operands: `["&", ["=", "pnode", "node1"],
 * ["?", "oper_state"]]`. Refuses regular expressions, since a hostile one can block the processor.
 * @throws RapiFailure 400
 */
export function parseFilter(filter: unknown, names: ReadonlySet<string>, depth = 0): Matches {
  if (filter === null || filter === undefined) return () => true;
  if (!Array.isArray(filter) || depth > MAX_DEPTH) throw malformed();
  // Array.isArray infers any.
  const [operator, ...operands] = filter as readonly unknown[];
  if (operator === '&' || operator === '|') {
    const parts = operands.map((operand) => parseFilter(operand, names, depth + 1));
    if (operator === '&') return (item) => parts.every((matches) => matches(item));
    return (item) => parts.some((matches) => matches(item));
  }
  if (operator === '!' && operands.length === 1) {
    const matches = parseFilter(operands[0], names, depth + 1);
    return (item) => !matches(item);
  }
  return parseComparison(operator, operands, names);
}

function parseComparison(
  operator: unknown,
  [name, value]: readonly unknown[],
  names: ReadonlySet<string>,
): Matches {
  if (typeof name !== 'string' || !names.has(name)) {
    throw new RapiFailure(400, 'the filter names an unknown field');
  }
  switch (operator) {
    case '?':
      return (item) => isTrue(ownValue(item, name));
    case '=':
    case '==':
      return (item) => ownValue(item, name) === value;
    case '!=':
      return (item) => ownValue(item, name) !== value;
    case '=[]':
      return (item) => {
        const list = ownValue(item, name);
        return Array.isArray(list) && list.includes(value);
      };
  }
  const holds = comparisons.get(operator);
  if (holds === undefined) throw malformed();
  return (item) => {
    const order = compare(ownValue(item, name), value);
    return order !== undefined && holds(order);
  };
}

/** Returns true if the value is true in Python. */
function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Compares two values; undefined if they have no order. */
function compare(a: unknown, b: unknown): number | undefined {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b);
  return undefined;
}

function malformed(): RapiFailure {
  return new RapiFailure(
    400,
    'the filter must be one of & | ! ? == != < <= > >= =[] with its operands',
  );
}
