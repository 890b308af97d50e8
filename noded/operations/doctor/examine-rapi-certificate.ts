import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { type Check, failure, ok, warning } from './check.ts';

const CHECK = 'rapi-certificate';
const DAY_MS = 86_400_000;
/** Certbot renews 30 days before the end: fewer days mean that a renewal failed. */
const NEEDED_DAYS = 21;

export const checkRapiCertificate: Check = async ({ config }) => {
  if (config.rapi === null) return [];
  const file = config.rapi.certificateFile;
  const hint = `Replace ${file}, or delete it to have a new one created. Then restart gnt-noded.`;
  try {
    return examineCertificate({ file, pem: await readFile(file), hint }, Date.now());
  } catch (error) {
    return warning(CHECK, `${file} cannot be read at the next start: ${messageOf(error)}`, hint);
  }
};

/** Judges the end of a certificate, after which clients of the remote API refuse it. Pure. */
export function examineCertificate(
  { file, pem, hint }: Readonly<{ file: string; pem: Buffer; hint: string }>,
  nowMs: number,
): DoctorFinding {
  const { validToDate } = new X509Certificate(pem);
  const end = validToDate.toISOString().slice(0, 10);
  const days = Math.floor((validToDate.getTime() - nowMs) / DAY_MS);
  const message = `the certificate of the remote API (${file})`;
  if (days < 0) return failure(CHECK, `${message} expired on ${end}: clients refuse it`, hint);
  if (days < NEEDED_DAYS) return warning(CHECK, `${message} expires on ${end}`, hint);
  return ok(CHECK, `${message} is valid until ${end}`);
}
