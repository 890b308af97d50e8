import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { type Check, failure, ok, warning } from './check.ts';

const DAY_MS = 86_400_000;
/** Certbot renews 30 days before the end: fewer days mean that a renewal failed. */
const NEEDED_DAYS = 21;
/** Checks by the setting of the listener, with the subject of their messages. */
const LISTENERS = [
  ['rapi', 'rapi-certificate', 'the remote API'],
  ['web', 'web-certificate', 'the web page'],
  ['identity', 'identity-certificate', '--identity-listen'],
] as const;

export const checkCertificates: Check = async ({ config }) => {
  const findings = LISTENERS.map(async ([setting, check, subject]) => {
    const file = config[setting]?.certificateFile;
    return file === undefined ? [] : [await checkFile(file, check, subject)];
  });
  return (await Promise.all(findings)).flat();
};

async function checkFile(file: string, check: string, subject: string): Promise<DoctorFinding> {
  const hint = `Replace ${file}, or delete it to have a new one created. Then restart gnt-noded.`;
  try {
    return examineCertificate(
      { check, subject, file, hint, pem: await readFile(file) },
      Date.now(),
    );
  } catch (error) {
    return warning(check, `${file} cannot be read at the next start: ${messageOf(error)}`, hint);
  }
}

interface Certificate {
  readonly check: string;
  readonly subject: string;
  readonly file: string;
  readonly hint: string;
  readonly pem: Buffer;
}

/** Judges the end of a certificate, after which clients refuse it. Pure. */
export function examineCertificate(
  { check, subject, file, hint, pem }: Certificate,
  nowMs: number,
): DoctorFinding {
  const { validToDate } = new X509Certificate(pem);
  const end = validToDate.toISOString().slice(0, 10);
  const days = Math.floor((validToDate.getTime() - nowMs) / DAY_MS);
  const message = `the certificate of ${subject} (${file})`;
  if (days < 0) return failure(check, `${message} expired on ${end}: clients refuse it`, hint);
  if (days < NEEDED_DAYS) return warning(check, `${message} expires on ${end}`, hint);
  return ok(check, `${message} is valid until ${end}`);
}
