import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { removeHalves, writeDurably } from '#shared/files/durable.ts';
import type { Logger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';

/** As long as Ganeti's own certificates. */
const VALID_DAYS = 5 * 365;

/**
 * Returns the PEM file with the key and the certificate. Creates a self-signed one if the file is
 * missing, as Ganeti does for a new cluster.
 * @throws AppError FILE_UNREADABLE if the file is not such a PEM
 */
export async function ensureCertificate(
  { file, option }: { readonly file: string; readonly option: string },
  nodeName: string,
  logger: Logger,
): Promise<Buffer> {
  await removeHalves([file]);
  try {
    const pem = await readFile(file);
    createSecureContext({ key: pem, cert: pem });
    return pem;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') {
      throw new AppError('FILE_UNREADABLE', `${option} ${file}: ${messageOf(error)}`, {
        hint: 'The file must hold a private key and its certificate in PEM. Without the file, gnt-noded creates one.',
        cause: error,
      });
    }
  }
  const pem = await signForItself(nodeName);
  await mkdir(dirname(file), { recursive: true });
  await writeDurably(file, pem, { mode: 0o600 });
  logger.info('api.certificate-made', { file, name: nodeName, days: VALID_DAYS });
  return Buffer.from(pem);
}

/**
 * Uses openssl, since Node creates keys but no certificates. The key is written only to the
 * resulting file.
 */
async function signForItself(nodeName: string): Promise<string> {
  const { stdout } = await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc'],
    ...['-keyout', '-', '-sha256', '-days', String(VALID_DAYS)],
    // A common name has at most 64 characters. Clients check the alternative name.
    ...['-subj', `/CN=${nodeName.slice(0, 64)}`, '-addext', `subjectAltName=DNS:${nodeName}`],
  ]);
  return `${stdout.trim()}\n`;
}
