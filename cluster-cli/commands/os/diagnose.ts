import type { NodeOs, OsInfo } from '#shared/contract/api.ts';

/** An OS definition across nodes. */
export interface OsDiagnosis {
  readonly name: string;
  /** `partial`: valid only on some nodes. */
  readonly status: 'valid' | 'invalid' | 'partial';
  /** All nodes with the definition have the same content. */
  readonly isSame: boolean;
  readonly found: readonly { readonly node: string; readonly os: OsInfo }[];
  /** Nodes that answered and lack it. */
  readonly missing: readonly string[];
}

/** Lists every definition of every node that answered. */
export function listFound(nodes: readonly NodeOs[]): OsDiagnosis['found'] {
  return nodes.flatMap((answer) =>
    'silent' in answer ? [] : answer.operatingSystems.map((os) => ({ node: answer.node, os })),
  );
}

/** Returns the nodes' definitions grouped and sorted by name. Pure. */
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
 * Returns, for each definition of this node, the other nodes that lack it, cannot use it, or have
 * another content. Pure.
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

/**
 * Tells whether all digests are equal. A definition without a digest is invalid and reported as
 * such.
 */
function isSame(found: OsDiagnosis['found']): boolean {
  const digests = found.flatMap(({ os }) => os.trust.digest ?? []);
  return new Set(digests).size <= 1;
}
