import { z } from 'zod';
import { osParameterName } from './primitives.ts';

/** Details of SECRETS_NEEDED: what has to be given before the operation can be tried. */
export const neededSecrets = z.object({
  osParameters: z.array(osParameterName),
  /** The user of the login at the server of the personalization package. */
  packageUser: z.boolean(),
  packagePassword: z.boolean(),
});
export type NeededSecrets = z.infer<typeof neededSecrets>;

/** Details of CHANNEL_FULL: seconds after which to send again, as an HTTP header tells them. */
export const fullChannel = z.object({ retryAfter: z.coerce.number().int().nonnegative() });
