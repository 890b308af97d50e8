import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { RelaySettings } from '#shared/contract/relay.ts';
import type { Credential } from './credential.ts';
import { Refusal } from './refusal.ts';
import { answerHeaders } from './relay-headers.ts';
import { relayedLocation } from './relay-target.ts';
import { Scrubber } from './scrubber.ts';

const REDIRECTIONS = [301, 302, 303, 307, 308];

export interface AnswerRules {
  readonly relay: RelaySettings;
  readonly credential: Credential;
  readonly maxBytes: number;
}

export interface AnswerLimits {
  readonly timeout: AbortSignal;
  readonly timeoutS: number;
  readonly maxBytes: number;
  /** Counts the bytes. */
  readonly usage: { received: number };
}

/** Returns the body for the guest, without the credential and within the limits. */
export function answerBody(
  answer: IncomingMessage,
  forms: readonly string[],
  limits: AnswerLimits,
): Readable {
  const chunks = scrubbed(limited(answer, limits), new Scrubber(forms));
  return Readable.from(chunks, { objectMode: false });
}

/**
 * Returns the headers for the guest, without the credential.
 * @param url of the request
 * @throws Refusal for an answer that must not reach the guest
 */
export function guestHeaders(
  name: string,
  { relay, credential, maxBytes }: AnswerRules,
  url: URL,
  answer: IncomingMessage,
): string[] {
  const { statusCode: status = 502, headers } = answer;
  const length = headers['content-length'];
  refuseUnreadable(status, headers, maxBytes);
  const { location } = headers;
  const relayed = location === undefined ? undefined : relayedLocation(relay, name, url, location);
  if (REDIRECTIONS.includes(status) && relayed === undefined) throw outside(location, url);
  const passed = answerHeaders(answer.rawHeaders);
  if (relayed !== undefined) passed.push('location', relayed);
  const scrubber = new Scrubber(credential.forms);
  const values = passed.map((text, index) => (index % 2 === 0 ? text : scrub(text, scrubber)));
  return length === undefined ? values : [...values, 'content-length', length];
}

/** @throws Refusal for an answer in which the credential could not be found, or that is too long */
function refuseUnreadable(status: number, headers: IncomingHttpHeaders, maxBytes: number): void {
  if (status < 200 || status > 599) throw new Refusal(502, `the server answered ${status}`);
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  const framing = headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  // The credential could not be found in such an answer.
  if (encoding !== 'identity' || framing !== 'chunked')
    throw new Refusal(502, 'the server compressed its answer, although the relay did not allow it');
  if (Number(headers['content-length'] ?? 0) > maxBytes)
    throw new Refusal(502, `the answer is longer than ${maxBytes} bytes`);
}

function outside(location: string | undefined, url: URL): Refusal {
  const host = location === undefined ? undefined : URL.parse(location, url)?.host;
  const target = host ?? 'no valid URL';
  return new Refusal(
    502,
    `the server redirects to ${target}, outside of the relay's URL and paths`,
  );
}

function scrub(text: string, scrubber: Scrubber): string {
  const parts = [scrubber.push(Buffer.from(text, 'latin1')), scrubber.end()];
  return Buffer.concat(parts).toString('latin1');
}

/** Ends an answer that exceeds a limit of the relay. */
async function* limited(answer: IncomingMessage, limits: AnswerLimits): AsyncGenerator<Buffer> {
  const { timeout, timeoutS, maxBytes, usage } = limits;
  try {
    // Without an encoding the chunks are Buffers.
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      usage.received += chunk.length;
      if (usage.received > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
      yield chunk;
    }
  } catch (error) {
    if (timeout.aborted)
      throw new Error(`the request took longer than ${timeoutS} s`, { cause: error });
    throw error;
  }
}

async function* scrubbed(
  chunks: AsyncIterable<Buffer>,
  scrubber: Scrubber,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const ready = scrubber.push(chunk);
    if (ready.length > 0) yield ready;
  }
  const rest = scrubber.end();
  if (rest.length > 0) yield rest;
}
