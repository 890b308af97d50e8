import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Creates a self-signed certificate for 127.0.0.1 that only explicit configuration trusts. */
export async function makeOwnAuthority(
  directory: string,
): Promise<{ readonly key: string; readonly cert: string; readonly certFile: string }> {
  const [keyFile, certFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', ['req', '-x509', ...curve, '-days', '2', ...names, ...files], {
    stdio: 'ignore',
  });
  const [key, cert] = await Promise.all([keyFile, certFile].map((file) => readFile(file, 'utf8')));
  return { key: key ?? '', cert: cert ?? '', certFile };
}
