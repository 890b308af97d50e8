import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  installEvent,
  type InstallEvent,
  type SignedInstallEvent,
} from '../contract/install-event.ts';
import { parseJson } from '../json/parse-json.ts';

/** No event has it, so a signature with it never fits an event. */
const NO_SEQUENCE = 0;

/**
 * Signs a body and its position in the order of events.
 * @param keyHex 32 bytes in hex, as an agent introduces it
 * @returns HMAC-SHA-256 in hex, as in `signedInstallEvent`
 */
export function signEvent(keyHex: string, sequence: number, body: string): string {
  return createHmac('sha256', Buffer.from(keyHex, 'hex'))
    .update(`${sequence}\n${body}`)
    .digest('hex');
}

/** Signs a path below `/ganeti/<v>/` that only the owner of the key may read. */
export function signPath(keyHex: string, path: string): string {
  return signEvent(keyHex, NO_SEQUENCE, path);
}

export function isPathSigned(keyHex: string, path: string, mac: string): boolean {
  return isSame(signPath(keyHex, path), mac);
}

export function isEventSigned(
  { sequence, body, mac }: SignedInstallEvent,
  keyHex: string,
): boolean {
  return isSame(signEvent(keyHex, sequence, body), mac);
}

export interface Introduction {
  readonly event: InstallEvent;
  readonly keyHex: string;
}

/**
 * Returns the event in which an agent announces its key, signed with it; null for any other report.
 */
export function readIntroduction(report: SignedInstallEvent): Introduction | null {
  const event = parseEvent(report.body);
  if (event?.type !== 'agent-started' || event.key === undefined) return null;
  return isEventSigned(report, event.key) ? { event, keyHex: event.key } : null;
}

/** @returns the event of a signed body, or null without one */
export function parseEvent(body: string): InstallEvent | null {
  return installEvent.safeParse(parseJson(body)).data ?? null;
}

function isSame(expectedHex: string, givenHex: string): boolean {
  const expected = Buffer.from(expectedHex, 'hex');
  const given = Buffer.from(givenHex, 'hex');
  return given.length === expected.length && timingSafeEqual(expected, given);
}
