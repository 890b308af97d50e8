import { writeFileSync } from 'node:fs';
import { run } from '#shared/process/run.ts';
import type { NatNames } from './nat-names.ts';
import { planNatRulesRemoval, RULE_FAMILIES } from './plan-nat-rules.ts';

/**
 * Applies the rules of a node's networks and notices changes by others.
 * @param path of a file of root in a folder that exists when rules are applied
 */
export function createRulesInForce(names: NatNames, path: string) {
  /** Last applied rules, and nft's listing of them. */
  let last: { readonly rules: string; readonly listed: string | null } | undefined;
  const list = async (family: string): Promise<string> =>
    (await run('nft', ['--terse', 'list', 'table', family, names.table])).stdout;
  /** Lists the tables without elements of sets; null if a table is missing. */
  const listAll = async (): Promise<string | null> => {
    try {
      return (await Promise.all(RULE_FAMILIES.map(list))).join('');
    } catch {
      return null;
    }
  };
  return {
    /** @returns false if the same rules were changed or removed in the kernel since */
    apply: async (rules: string): Promise<boolean> => {
      const isSame = last?.rules === rules;
      if (isSame && (await listAll()) === last?.listed) return true;
      // A file has no length limit, unlike an argument.
      writeFileSync(path, rules, { mode: 0o600 });
      await run('nft', ['-f', path]);
      last = { rules, listed: await listAll() };
      return !isSame;
    },
    remove: async (): Promise<void> => {
      last = undefined;
      await run('nft', [planNatRulesRemoval(names)]);
    },
    areThere: async (): Promise<boolean> => {
      const { stdout } = await run('nft', ['list', 'tables']);
      return stdout.split('\n').some((line) => line.endsWith(` ${names.table}`));
    },
  };
}

export type RulesInForce = ReturnType<typeof createRulesInForce>;
