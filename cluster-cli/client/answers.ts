import { z } from 'zod';
import * as api from '#shared/contract/api.ts';
import * as boot from '#shared/contract/boot-objects.ts';
import { fullChannel } from '#shared/contract/error-details.ts';
import { hookBook } from '#shared/contract/hook-book.ts';
import { catalogueInfo, imageInfo, resolvedImage } from '#shared/contract/image-catalogue.ts';
import { instanceInfo, instanceSummary } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { networkInfo } from '#shared/contract/network.ts';
import { profileInfo } from '#shared/contract/profile.ts';

/** The schemas of what the daemon answers. To make them takes longer than a list. */
export const answers = {
  ...api,
  ...boot,
  hookBook,
  catalogueInfo,
  imageInfo,
  resolvedImage,
  instanceInfo,
  instanceSummary,
  jobRecord,
  profileInfo,
  networkInfo,
  fullChannel,
  /** metad's refusals come through noded as they are, and have no hint. */
  refusal: api.apiError.extend({
    hint: z.string().nullable().default(null),
    details: z.record(z.string(), z.unknown()).default({}),
  }),
} as const;

export type Answers = typeof answers;
