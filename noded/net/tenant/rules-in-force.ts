import { writeFileSync } from 'node:fs';
import { run } from '#shared/process/run.ts';
import type { NatNames } from './nat-names.ts';
import { planNatRulesRemoval, RULE_FAMILIES } from './plan-nat-rules.ts';

/** The rules of a node's networks, as the kernel has them. */
export interface RulesInForce {
  /** @returns false where the same rules had been changed or taken away by somebody else */
  apply(rules: string): Promise<boolean>;
  remove(): Promise<void>;
  /** Whether any of them are there. */
  areThere(): Promise<boolean>;
}

/** @param path of a file of root's, in a folder that is there when rules are applied */
export function createRulesInForce(names: NatNames, path: string): RulesInForce {
  /** Those that were put in force last, and how they are listed since. */
  let last: { readonly rules: string; readonly listed: string | null } | undefined;
  const list = async (family: string): Promise<string> =>
    (await run('nft', ['--terse', 'list', 'table', family, names.table])).stdout;
  /** The tables without what sets have come to hold; null where one is gone. */
  const listAll = async (): Promise<string | null> => {
    try {
      return (await Promise.all(RULE_FAMILIES.map(list))).join('');
    } catch {
      return null;
    }
  };
  return {
    apply: async (rules) => {
      const isSame = last?.rules === rules;
      if (isSame && (await listAll()) === last?.listed) return true;
      // nft reads them from a file: there is no limit to what they are together.
      writeFileSync(path, rules, { mode: 0o600 });
      await run('nft', ['-f', path]);
      last = { rules, listed: await listAll() };
      return !isSame;
    },
    remove: async () => {
      last = undefined;
      await run('nft', [planNatRulesRemoval(names)]);
    },
    areThere: async () => {
      const { stdout } = await run('nft', ['list', 'tables']);
      return stdout.split('\n').some((line) => line.endsWith(` ${names.table}`));
    },
  };
}
