import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';

/** What Ganeti's node daemon asks of its metadata daemon. */
export type LuxiRequest =
  | { readonly method: 'echo'; readonly text: string }
  | { readonly method: 'updateConfig'; readonly instance: unknown };

/**
 * A request that is refused while the connection stays. Its text is Ganeti's where Ganeti has one.
 */
export class LuxiRefusal extends Error {}

/**
 * Bytes that are no request at all: the connection ends after the answer, as it does with Ganeti's
 * daemon.
 */
export class LuxiParseFailure extends Error {}

/** An instance has some hundreds; 8 MiB of them would hold all guests up for seconds. */
const MAX_VALUES = 50_000;

/** @throws LuxiRefusal, LuxiParseFailure */
export function parseLuxiRequest(text: string): LuxiRequest {
  if (countJsonValues(Buffer.from(text), MAX_VALUES) > MAX_VALUES)
    throw new LuxiParseFailure(`more than ${MAX_VALUES} values`);
  const value = parseJson(text);
  if (value === undefined) throw new LuxiParseFailure('not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LuxiParseFailure('expected an object');
  }
  // An object of JSON; both keys are judged below.
  const { method, args } = value as { method?: unknown; args?: unknown };
  if (typeof method !== 'string')
    throw new LuxiParseFailure("key 'method' is missing or not a string");
  if (args === undefined) throw new LuxiParseFailure("key 'args' not found");
  if (method !== 'echo' && method !== 'updateConfig') {
    throw new LuxiRefusal(`No such method: ${method.slice(0, 100)}`);
  }
  if (!Array.isArray(args) || args.length !== 1) {
    throw new LuxiRefusal('RPC input: Unable to read 1 tuple');
  }
  // Array.isArray says any.
  const [argument] = args as unknown[];
  if (method === 'updateConfig') return { method, instance: argument };
  if (typeof argument !== 'string') throw new LuxiRefusal('RPC input: Unable to read String');
  return { method, text: argument };
}
