import { createHmac } from 'node:crypto';

/**
 * Proof that whoever has the key said this, and when in the order of what it says.
 * @param keyHex 32 bytes in hex, as an agent introduces it
 * @returns HMAC-SHA-256 in hex, as `signedInstallEvent` has it
 */
export function signEvent(keyHex: string, sequence: number, body: string): string {
  return createHmac('sha256', Buffer.from(keyHex, 'hex'))
    .update(`${sequence}\n${body}`)
    .digest('hex');
}
