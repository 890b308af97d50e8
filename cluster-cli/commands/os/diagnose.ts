import type { NodeOs, OsInfo } from '#shared/contract/api.ts';

/** An OS definition as the nodes have it. */
export interface OsDiagnosis {
  readonly name: string;
  /** `partial`: on some nodes it is valid, on others it is not, or is not there. */
  readonly status: 'valid' | 'invalid' | 'partial';
  /** The nodes that have it have the same content. */
  readonly isSame: boolean;
  readonly found: readonly { readonly node: string; readonly os: OsInfo }[];
  /** Nodes that answered and do not have it. */
  readonly missing: readonly string[];
}

/** Lists every definition of every node that answered. */
export function listFound(nodes: readonly NodeOs[]): OsDiagnosis['found'] {
  return nodes.flatMap((answer) =>
    'silent' in answer ? [] : answer.operatingSystems.map((os) => ({ node: answer.node, os })),
  );
}

/** What was found on the nodes, by definition; in the order of their names. Pure. */
export function diagnoseAll(nodes: readonly NodeOs[]): readonly OsDiagnosis[] {
  const told = nodes.flatMap((node) => ('silent' in node ? [] : [node.node]));
  const found = listFound(nodes);
  const names = [...new Set(found.map(({ os }) => os.name))].sort();
  return names.map((name) => {
    const own = found.filter(({ os }) => os.name === name);
    const missing = told.filter((node) => !own.some((each) => each.node === node));
    return { name, status: judge(own, missing), isSame: isSame(own), found: own, missing };
  });
}

function judge(
  found: OsDiagnosis['found'],
  missing: OsDiagnosis['missing'],
): OsDiagnosis['status'] {
  if (found.every(({ os }) => !os.valid)) return 'invalid';
  return missing.length === 0 && found.every(({ os }) => os.valid) ? 'valid' : 'partial';
}

/**
 * What other nodes have under the name of each definition of this one: those that lack it, cannot
 * use it, or have another content, in words. None where nobody differs. Pure.
 */
export function findDiffering(
  own: readonly OsInfo[],
  nodes: readonly NodeOs[],
): ReadonlyMap<string, readonly string[]> {
  const differing = own.map(({ name, valid, trust }): [string, readonly string[]] => [
    name,
    nodes.flatMap((node) => {
      if ('silent' in node) return [];
      const there = node.operatingSystems.find((os) => os.name === name);
      if (there?.valid === valid && there.trust.digest === trust.digest) return [];
      const what = there === undefined ? 'missing' : there.valid ? 'other content' : 'invalid';
      return [`${node.node} (${what})`];
    }),
  ]);
  return new Map(differing.filter(([, of]) => of.length > 0));
}

/** A definition without a digest is a broken one, which says so by itself. */
function isSame(found: OsDiagnosis['found']): boolean {
  const digests = found.flatMap(({ os }) => os.trust.digest ?? []);
  return new Set(digests).size <= 1;
}
