import { z } from 'zod';
import { base64 } from './primitives.ts';
import { MIB } from '../units/bytes.ts';

/** Sources of hook documents in their order. */
export const hookSource = z.enum(['appliance', 'cluster', 'os', 'instance']);
export type HookSource = z.infer<typeof hookSource>;

/** 1 MiB of content. */
const MAX_CONTENT_BASE64 = 1_400_000;
/** Bytes of all documents of one installation. The agent reads them at once. */
export const MAX_HOOKS_BYTES = 4 * MIB;
/** Hook documents of one source. */
export const MAX_HOOK_DOCUMENTS = 64;

/** A document that the node transports. Only the appliance parses it. The name has no folders. */
export const hookFile = z.strictObject({
  name: z.string().regex(/^[^/\0\n]{1,255}$/, 'not a file name'),
  content: base64.max(MAX_CONTENT_BASE64),
});
export type HookFile = z.infer<typeof hookFile>;
export const hookFiles = z.array(hookFile).max(MAX_HOOK_DOCUMENTS);

export const hookDocument = hookFile.extend({ source: hookSource });
export type HookDocument = z.infer<typeof hookDocument>;

/** GET /ganeti/<v>/install/hooks.json, in the order of execution. */
export const hookDocuments = z.array(hookDocument).max(3 * MAX_HOOK_DOCUMENTS);
