import { z } from 'zod';
import { osParameterName } from './primitives.ts';

/** Details of SECRETS_NEEDED: the values to give before a new attempt. */
export const neededSecrets = z.object({
  osParameters: z.array(osParameterName),
  /** The user at the server of the personalization package. */
  packageUser: z.boolean(),
  packagePassword: z.boolean(),
});
export type NeededSecrets = z.infer<typeof neededSecrets>;

/** Details of CHANNEL_FULL: seconds before a new attempt, from the HTTP header Retry-After. */
export const fullChannel = z.object({ retryAfter: z.coerce.number().int().nonnegative() });
