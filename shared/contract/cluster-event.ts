import { z } from 'zod';
import { instanceSummary } from './instance.ts';
import { jobRecord } from './job.ts';
import { nodeFlags } from './node-flags.ts';
import { uuid } from './primitives.ts';

/**
 * The data of each event of GET /v1/events, which follows the format of server-sent events. A
 * client reads lists after `hello` without `isResumed`, and again after `reset`. All other events
 * are changes of these lists.
 */
export const helloEvent = z.object({
  node: z.string(),
  version: z.string(),
  /** The events after the client's Last-Event-ID follow, so that lists need not be read again. */
  isResumed: z.boolean(),
});
export type HelloEvent = z.infer<typeof helloEvent>;

export const instancesEvent = z.object({
  changed: z.array(instanceSummary),
  removed: z.array(uuid),
});
export type InstancesEvent = z.infer<typeof instancesEvent>;

/** A job without its input, log and result, which may be long. */
export const jobSummary = jobRecord.omit({ input: true, log: true, result: true }).extend({
  /** A check that ends before it changes anything. Absent: an operation. */
  isDryRun: z.literal(true).optional(),
});
export type JobSummary = z.infer<typeof jobSummary>;

export const jobsEvent = z.object({
  changed: z.array(jobSummary),
  /** Ids of forgotten jobs. */
  removed: z.array(z.number().int()),
});
export type JobsEvent = z.infer<typeof jobsEvent>;

/** All nodes of the cluster. */
export const nodesEvent = z.object({
  nodes: z.array(
    z.object({
      name: z.string(),
      /** `silent`: does not answer. `failing`: answers with errors. `offline`: marked so. */
      state: z.enum(['up', 'silent', 'failing', 'offline']),
      flags: nodeFlags,
    }),
  ),
});
export type NodesEvent = z.infer<typeof nodesEvent>;

export const objectsEvent = z.object({
  /** Lists that changed. */
  changed: z.array(
    z.enum(['cluster', 'os', 'networks', 'profiles', 'bootenvs', 'boot-templates', 'boot-params']),
  ),
});
export type ObjectsEvent = z.infer<typeof objectsEvent>;
