import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';

/** Requests of Ganeti's node daemon to its metadata daemon. */
export type LuxiRequest =
  | { readonly method: 'echo'; readonly text: string }
  | { readonly method: 'updateConfig'; readonly instance: unknown };

/** A refused request; the connection stays open. The text is Ganeti's where Ganeti has one. */
export class LuxiRefusal extends Error {}

/** Bytes that are not a request: the connection ends after the answer, as with Ganeti's daemon. */
export class LuxiParseFailure extends Error {}

/** An instance has some hundreds. Parsing 8 MiB of them would delay all guests for seconds. */
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
  // A JSON object; both keys are checked below.
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
  // Array.isArray widens to any[].
  const [argument] = args as unknown[];
  if (method === 'updateConfig') return { method, instance: argument };
  if (typeof argument !== 'string') throw new LuxiRefusal('RPC input: Unable to read String');
  return { method, text: argument };
}
