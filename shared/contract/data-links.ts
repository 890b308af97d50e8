import { z } from 'zod';

/** The way of streams from this node to another one. */
export const dataLink = z.object({
  node: z.string(),
  /** `unused`: the node announces an address, and no stream needs it now. */
  path: z.enum(['direct', 'store', 'unused']),
  address: z.object({ host: z.string(), port: z.number().int() }).nullable(),
  /** Why streams go through the store; null if they do not. */
  reason: z.string().nullable(),
});
export type DataLink = z.infer<typeof dataLink>;

export const dataLinks = z.object({
  /** Where this node listens for data links; null with the reason if it does not. */
  address: z.object({ host: z.string(), port: z.number().int() }).nullable(),
  reason: z.string().nullable(),
  links: z.array(dataLink),
});
export type DataLinks = z.infer<typeof dataLinks>;
