const METHODS = [
  'GET',
  'GET',
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'BREW',
  'get',
];
const PATHS = [
  '/',
  '/ganeti/latest/os/parameters.json',
  '/ganeti/latest/read',
  '/ganeti/latest/write',
  '/ganeti/2026-12-01/meta_data.json',
  '/ganeti/latest/ready',
  '/latest/meta-data/',
  '/latest/user-data',
  '/latest/api/token',
  '/openstack',
  '/openstack/latest/password',
  '/openstack/2018-08-27/meta_data.json',
  '/nocloud/network-config',
  '/latest/meta-data/public-keys/0=key-0',
  '/ganeti/latest/install/events',
  '/computeMetadata/v1/instance/',
  '/computeMetadata/v1/instance/guest-attributes/space/key',
];
const PATH_NOISE = [
  '..',
  '%2e%2e',
  '%2f',
  '%00',
  '//',
  '/.',
  '%',
  '%zz',
  '%E0%A4%A',
  '\\',
  ';',
  '?',
  '#',
  '%c0%af',
  '*',
  '~',
  '�',
  '?wait=0',
  '?offset=0',
  '?offset=-1',
  '?wait_for_change=true&timeout_sec=0',
  '?last_etag=%00',
  '?recursive=true',
  '?alt=json',
  '/latest',
  ' ',
];
const HEADERS = [
  'Host: 169.254.169.254',
  'Host: 169.254.169.254',
  'Host: 169.254.169.254',
  'Host: [fe80::a9fe:a9fe]:80',
  'Host: evil.example',
  'host:169.254.169.254',
  'X-Forwarded-For: 1.2.3.4',
  'Forwarded: for=1',
  'If-None-Match: *',
  'If-None-Match: "a", W/"b',
  'Range: bytes=0-',
  'Range: bytes=9-1',
  'X-aws-ec2-metadata-token-ttl-seconds: 60',
  'X-aws-ec2-metadata-token-ttl-seconds: 1e9',
  'X-aws-ec2-metadata-token: AAAA',
  'Metadata-Flavor: Google',
  'Connection: close',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Content-Length: 5',
  'Content-Length: 70000',
  'Content-Length: -1',
  'Content-Length: 5, 5',
  'A b: c',
  ': x',
  '\0: x',
  ' folded',
  'Accept-Encoding: gzip',
  'TE: trailers',
];
const BODIES = [
  '',
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\n',
  'zz\r\n',
  '[]',
  '[{"type":"log"}]',
  '\0\0\0\0\0',
];

/** A correct request of a client: URLs have no bytes beyond ASCII. */
export const RIGHT_REQUEST =
  /GET \/[!"$&-)+-:<->@-[\]-}]* HTTP\/1\.1\r\nHost: 169\.254\.169\.254\r\n\r\n/g;

/** Generates one request, from nearly right to hopeless. */
export function generateRequest(random: (below: number) => number): Buffer {
  const pick = (from: readonly string[]): string => from[random(from.length)] ?? '';
  let path = pick(PATHS);
  // Most of them are right, or the noise would end each connection too early.
  if (random(3) > 0) return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`);
  for (let count = random(3); count > 0; count--) {
    const at = random(path.length + 1);
    path = path.slice(0, at) + pick(PATH_NOISE) + path.slice(at);
  }
  const headers = ['Host: 169.254.169.254'].slice(random(20) === 0 ? 1 : 0);
  for (let count = random(4); count > 0; count--) headers.push(pick(HEADERS));
  if (random(200) === 0) headers.push(`X: ${'a'.repeat(random(20_000))}`);
  const version =
    random(30) === 0 ? pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', '', 'HTTQ/1.1']) : 'HTTP/1.1';
  const text = `${pick(METHODS)} ${path} ${version}\r\n${headers.join('\r\n')}\r\n\r\n${pick(BODIES)}`;
  const bytes = Buffer.from(text, 'latin1');
  for (let count = random(40) === 0 ? 3 : 0; count > 0; count--) {
    bytes[random(bytes.length)] = random(256);
  }
  return random(50) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes;
}
