import { z } from 'zod';
import { hookDocument, hookSource, MAX_HOOK_DOCUMENTS } from './hooks.ts';
import { hookPoint, hookStages, mirrorName } from './primitives.ts';

/** Characters of the label of a step, the file name of a document, or the name of a field. */
const MAX_WORD_LENGTH = 600;
const word = z.string().max(MAX_WORD_LENGTH);

/** Properties of an installation that decide whether hooks are valid. */
export const installationFacts = z.strictObject({
  /** The stages of this installation. */
  points: z.array(hookPoint).readonly(),
  /** The disk that receives the image, by its name in scripts; null: no image. */
  imageDisk: word.nullable(),
  /** Allowed package mirrors; null: not known yet. */
  mirrors: z.array(mirrorName).nullable(),
});
export type InstallationFacts = z.infer<typeof installationFacts>;

/** The hooks in their order, with their sources and without their values. */
export const hookBook = z.strictObject({
  stages: z.array(
    z.strictObject({
      stage: z.enum(hookStages),
      steps: z.array(
        z.strictObject({
          /** `step 'operator'`, or by its number. */
          label: word,
          /** `cluster/10-users.yaml` */
          file: word,
          /** Names of its fields, including conditions. */
          fields: z.array(word),
        }),
      ),
    }),
  ),
  /** A line for each part of the documents that applies to no stage. */
  remarks: z.array(z.string()),
});
export type HookBook = z.infer<typeof hookBook>;

/** Standard input of the program that parses hooks on the host. */
export const hookQuestion = z.strictObject({
  documents: z.array(hookDocument).max(hookSource.options.length * MAX_HOOK_DOCUMENTS),
  facts: installationFacts,
});
export type HookQuestion = z.infer<typeof hookQuestion>;

/** Standard output of that program. */
export const hookVerdict = z.discriminatedUnion('verdict', [
  z.strictObject({ verdict: z.literal('fine'), book: hookBook }),
  z.strictObject({
    verdict: z.literal('refused'),
    message: z.string().max(10_000),
    hint: z.string().max(10_000).optional(),
  }),
]);
export type HookVerdict = z.infer<typeof hookVerdict>;
