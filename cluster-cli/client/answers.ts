import { z } from 'zod';
import { apiError } from '#shared/contract/api.ts';
import { type EndpointKey, endpoints } from '#shared/contract/endpoints.ts';

export { fullChannel } from '#shared/contract/error-details.ts';
export { instanceInfo, instanceSummary } from '#shared/contract/instance.ts';

/**
 * Schemas of answers. Commands load them only to validate an answer, because loading takes longer
 * than a list.
 */

/** gnt-noded passes refusals of gnt-metad on unchanged. They have no hint. */
export const refusal = apiError.extend({
  hint: z.string().nullable().default(null),
  details: z.record(z.string(), z.unknown()).default({}),
});

/**
 * Returns the schema of a status's body. Without one in the table, the schema refuses everything.
 */
export function schemaOf(key: EndpointKey, status: number): z.ZodType {
  const answers: Readonly<Record<number, unknown>> = endpoints[key].answers;
  const schema = answers[status];
  return schema instanceof z.ZodType ? schema : z.never();
}
