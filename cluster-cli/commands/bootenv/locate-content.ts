import { z } from 'zod';
import { CommandFailure } from '../../failures/failure.ts';

/**
 * Returns `FILE:LINE` for a line of a text in an object.
 * @param field of the object
 */
export type Locate = (field: readonly (string | number)[], line: number) => string;

/** Places of the given objects, by kind and name. */
export interface ContentPlaces {
  readonly templates: Map<string, Locate>;
  readonly bootEnvs: Map<string, Locate>;
}

const templateDetails = z.object({ template: z.string(), line: z.number() });
const bootEnvDetails = z.object({
  bootEnv: z.string(),
  field: z.array(z.union([z.string(), z.number()])),
  line: z.number(),
});

/**
 * Adds `FILE:LINE` to a refusal that names a line of a template. The daemon knows the objects but
 * not their files.
 * @returns the error to throw
 */
export function locateFailure(error: unknown, { templates, bootEnvs }: ContentPlaces): unknown {
  if (!(error instanceof CommandFailure)) return error;
  const ofTemplate = templateDetails.safeParse(error.details).data;
  const ofBootEnv = bootEnvDetails.safeParse(error.details).data;
  const place =
    (ofTemplate && templates.get(ofTemplate.template)?.(['Contents'], ofTemplate.line)) ??
    (ofBootEnv && bootEnvs.get(ofBootEnv.bootEnv)?.(ofBootEnv.field, ofBootEnv.line));
  if (place === undefined) return error;
  const { code, hint, exitStatus, details, stage, logTail } = error;
  const message = `${place}: ${error.message}`;
  return new CommandFailure({
    code,
    message,
    hint,
    exitStatus,
    details,
    stage,
    logTail,
    cause: error,
  });
}
