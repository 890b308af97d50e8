import { z } from 'zod';

/** The appliance that an instance's next installation uses. */
export const applianceInForce = z.object({
  /** Of an imported one, or `built`. */
  name: z.string(),
  /** Who says so: `instance`, `os NAME`, `cluster`; `default` where nobody does. */
  source: z.string(),
});
export type ApplianceInForce = z.infer<typeof applianceInForce>;

/**
 * GET /v1/appliances/{name}/users: who names an appliance, so that it is not taken away from them.
 */
export const applianceUsers = z.object({
  cluster: z.boolean(),
  /** OS definitions, with their variants. */
  operatingSystems: z.array(z.string()),
  instances: z.array(z.string()),
});
export type ApplianceUsers = z.infer<typeof applianceUsers>;

/** Instances that are named in a line which people read. */
const MAX_NAMED = 3;

/** `the cluster, OS debian, instances web1, web2 and 3 more` */
export function describeUsers({ cluster, operatingSystems, instances }: ApplianceUsers): string {
  const list = (word: string, names: readonly string[]): string[] => {
    if (names.length === 0) return [];
    const more = names.length - MAX_NAMED;
    const shown = names.slice(0, MAX_NAMED).join(', ');
    return [`${word} ${shown}${more > 0 ? ` and ${more} more` : ''}`];
  };
  return [
    ...(cluster ? ['the cluster'] : []),
    ...list('OS', operatingSystems),
    ...list('instance', instances),
  ].join('; ');
}
