import { z } from 'zod';
import { apiError } from '#shared/contract/api.ts';
import { type EndpointKey, endpoints } from '#shared/contract/endpoints.ts';

export { fullChannel } from '#shared/contract/error-details.ts';
export { instanceInfo, instanceSummary } from '#shared/contract/instance.ts';

/**
 * The schemas of answers. Commands load them only where an answer has to be validated, because that
 * takes longer than a list.
 */

/** A refusal of gnt-metad passes through gnt-noded unchanged and has no hint. */
export const refusal = apiError.extend({
  hint: z.string().nullable().default(null),
  details: z.record(z.string(), z.unknown()).default({}),
});

/** Schema of the body of a status; one that refuses everything if the table has none. */
export function schemaOf(key: EndpointKey, status: number): z.ZodType {
  const answers: Readonly<Record<number, unknown>> = endpoints[key].answers;
  const schema = answers[status];
  return schema instanceof z.ZodType ? schema : z.never();
}
