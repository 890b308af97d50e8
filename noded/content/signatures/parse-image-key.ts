import type { ImageKey } from '#shared/contract/image-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readArmor } from './armor.ts';
import { parseMinisignKey } from './minisign.ts';
import { SignatureProblem } from './signature-problem.ts';

/** @throws AppError VALIDATION */
export function parseImageKey(name: string, text: string): ImageKey {
  const refuse = (why: string): AppError =>
    new AppError('VALIDATION', `image key '${name}': ${why}`, {
      hint: 'Give the content of minisign.pub, or the output of gpg --armor --export KEY: NAME=@FILE',
    });
  if (/BEGIN PGP PRIVATE KEY|minisign encrypted secret key/.test(text))
    throw refuse('it is a secret key; only a public key belongs here');
  const minisign = parseMinisignKey(text);
  if (minisign !== undefined) return minisign;
  let keyring: Buffer | undefined;
  try {
    keyring = readArmor(text, 'PUBLIC KEY BLOCK');
  } catch (error) {
    if (!(error instanceof SignatureProblem)) throw error;
    throw refuse(error.message);
  }
  if (keyring === undefined) throw refuse('neither a minisign nor an OpenPGP public key');
  return { kind: 'openpgp', keyring: keyring.toString('base64') };
}
