import { z } from 'zod';
import { hookDocument, hookSource, MAX_HOOK_DOCUMENTS } from './hooks.ts';
import { hookPoint, hookStages, mirrorName } from './primitives.ts';

/** Longest label of a step, file of a document, or name of a field that is told. */
const MAX_WORD_LENGTH = 600;
const word = z.string().max(MAX_WORD_LENGTH);

/** What a machine is going to do, as far as hooks can be right or wrong for it. */
export const installationFacts = z.strictObject({
  /** The stages that are this machine's to run. */
  points: z.array(hookPoint).readonly(),
  /** The disk that an image is written to, by the name that scripts have for it; null: no image. */
  imageDisk: word.nullable(),
  /** Package mirrors that are allowed; null: nobody knows yet. */
  mirrors: z.array(mirrorName).nullable(),
});
export type InstallationFacts = z.infer<typeof installationFacts>;

/** The order in which hooks are run, with where they come from; nothing of what they do it with. */
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
          /** Names of its fields, conditions among them. */
          fields: z.array(word),
        }),
      ),
    }),
  ),
  /** What documents say that no stage of an installation has; a line each. */
  remarks: z.array(z.string()),
});
export type HookBook = z.infer<typeof hookBook>;

/** What the program that reads hooks on the host is asked, on its standard input. */
export const hookQuestion = z.strictObject({
  documents: z.array(hookDocument).max(hookSource.options.length * MAX_HOOK_DOCUMENTS),
  facts: installationFacts,
});
export type HookQuestion = z.infer<typeof hookQuestion>;

/** Its answer. */
export const hookVerdict = z.discriminatedUnion('verdict', [
  z.strictObject({ verdict: z.literal('fine'), book: hookBook }),
  z.strictObject({
    verdict: z.literal('refused'),
    message: z.string().max(10_000),
    hint: z.string().max(10_000).optional(),
  }),
]);
export type HookVerdict = z.infer<typeof hookVerdict>;
