import { commandLine } from '../parts/quote.ts';

interface Choosable {
  readonly name: string;
  readonly status: string;
  readonly primaryNode: string;
}

export interface InstanceChoice {
  /** Part of a name, or a pattern with the wildcards * and ?. Empty: all. */
  readonly name: string;
  readonly status: string;
  readonly node: string;
  /** Field of `gnt-instance list`, after a minus sign for the reverse order. */
  readonly sort: string;
}

/** Returns the instances that match. Pure. */
export function chooseInstances<Item extends Choosable>(
  all: readonly Item[],
  { name, status, node }: InstanceChoice,
): readonly Item[] {
  const isWanted = matcherOf(name.trim().toLowerCase());
  return all.filter(
    (each) =>
      isWanted(each.name) &&
      (status === '' || each.status === status) &&
      (node === '' || each.primaryNode === node),
  );
}

function matcherOf(pattern: string): (name: string) => boolean {
  if (!/[*?]/.test(pattern)) return (name) => name.includes(pattern);
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.');
  const expression = new RegExp(`^${source}$`);
  return (name) => expression.test(name);
}

/** Returns the command that lists the same instances. Pure. */
export function listCommand({ name, status, node, sort }: InstanceChoice): string {
  const pattern = name.trim().toLowerCase();
  const filters = [
    ...(status === '' ? [] : [`status == "${status}"`]),
    ...(node === '' ? [] : [`pnode == "${node}"`]),
  ];
  return commandLine(
    'gnt-instance',
    'list',
    ...(filters.length > 0 ? ['-F', filters.join(' and ')] : []),
    // The sign belongs to the value of the option.
    ...(sort === 'name' ? [] : [`--sort=${sort}`]),
    ...(pattern === '' ? [] : [/[*?]/.test(pattern) ? pattern : `*${pattern}*`]),
  );
}
