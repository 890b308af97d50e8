import { SignatureProblem } from './signature-problem.ts';

const CONTINUED_BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Decodes the first OpenPGP armour of one kind in a text (RFC 9580, 6.2). Ignores its optional
 * checksum, since the signature decides.
 * @param kind `PUBLIC KEY BLOCK`, `SIGNATURE`
 * @returns undefined when there is none
 * @throws SignatureProblem for invalid base64
 */
export function readArmor(text: string, kind: string): Buffer | undefined {
  const lines = text.split(/\r?\n/).map((line) => line.trimEnd());
  const begin = lines.indexOf(`-----BEGIN PGP ${kind}-----`);
  const end = lines.indexOf(`-----END PGP ${kind}-----`, begin);
  if (begin === -1 || end === -1) return undefined;
  const inside = lines.slice(begin + 1, end);
  // Headers are in front of an empty line.
  const body = inside.slice(inside.indexOf('') + 1).filter((line) => !/^=[^=]/.test(line));
  const base64 = body.join('');
  if (!CONTINUED_BASE64.test(base64))
    throw new SignatureProblem('its armour does not contain base64');
  return Buffer.from(base64, 'base64');
}
