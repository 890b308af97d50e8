import { z } from 'zod';

/** The appliance that an instance's next installation uses. */
export const applianceInForce = z.object({
  /** Name of an imported appliance, or `built`. */
  name: z.string(),
  /** `instance`, `os NAME`, `cluster` or `default`. */
  source: z.string(),
});
export type ApplianceInForce = z.infer<typeof applianceInForce>;

/**
 * GET /v1/appliances/{name}/users: the settings that name an appliance, which prevent its removal.
 */
export const applianceUsers = z.object({
  cluster: z.boolean(),
  /** OS definitions, with their variants. */
  operatingSystems: z.array(z.string()),
  instances: z.array(z.string()),
});
export type ApplianceUsers = z.infer<typeof applianceUsers>;

/** Names that a message shows. */
const MAX_NAMED = 3;

/** Returns, for example, `the cluster; OS debian; instance web1, web2, web3 and 3 more`. */
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
