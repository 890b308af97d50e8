import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { AppError } from '#shared/errors/app-error.ts';
import { launchProgram } from '#shared/process/launch.ts';
import { reveal } from '#shared/secret/secret.ts';
import { type ByteSource, isSameVersion, type Opened, TruncatedError } from './byte-source.ts';
import { tieToDaemon } from '../../../host/child-supervisor.ts';
import { findLogin, type Login } from './netrc.ts';
import { ForbiddenAddressError, SsrfGuard } from './ssrf-guard.ts';
import { formatUrl, loginOf } from './source-url.ts';

export interface FtpSourceOptions {
  readonly url: URL;
  readonly login?: Login | undefined;
  readonly netrc: string;
  readonly remoteHosts: readonly string[];
}

/** Permanent refusals by curl's exit status (curl(1), EXIT CODES). */
const permanent: Readonly<Record<number, string>> = {
  1: 'unsupported protocol',
  3: 'malformed URL',
  9: 'access denied',
  19: 'the server refused the file',
  67: 'the server refused the login',
  78: 'no such file',
};
const PARTIAL_FILE = 18;

/** A file on an FTP server, read by curl. Credentials go through its stdin, not its arguments. */
export function createFtpSource(options: FtpSourceOptions): ByteSource {
  const display = formatUrl(options.url);
  const guard = new SsrfGuard(options.url, options.remoteHosts);
  return {
    display,
    async open(request) {
      const base = await describeTarget(options, guard, display);
      const head = await readHead(base, request.signal, display);
      const { totalBytes, validators } = head;
      const isSame = request.validators !== null && isSameVersion(request.validators, validators);
      if (request.offset === 0 && isSame) return { kind: 'not-modified' };
      const offset = isSame ? request.offset : 0;
      const config = [...base, 'output = "-"', ...(offset > 0 ? [`continue-at = ${offset}`] : [])];
      const body = readBody(config, request.signal, display);
      return { kind: 'body', offset, totalBytes, validators, body } satisfies Opened;
    },
  };
}

/** Returns curl's configuration: the URL, the login and the address that passed the guard. */
async function describeTarget(
  { url, login, netrc }: FtpSourceOptions,
  guard: SsrfGuard,
  display: string,
): Promise<readonly string[]> {
  const target = new URL(url);
  const given = login ?? loginOf(url) ?? findLogin(netrc, url);
  target.username = '';
  target.password = '';
  target.hash = '';
  let address: string;
  try {
    address = await guard.resolve(url);
    guard.answered(address);
  } catch (error) {
    if (error instanceof ForbiddenAddressError) throw failure(display, error.message);
    throw error;
  }
  const port = url.port === '' ? '21' : url.port;
  return [
    `url = ${quote(target.href)}`,
    `resolve = ${quote(`${url.hostname}:${port}:${address}`)}`,
    ...(given ? [`user = ${quote(`${given.user}:${reveal(given.password)}`)}`] : []),
  ];
}

/** Quotes a value for curl(1) --config, where a backslash escapes within double quotes. */
function quote(value: string): string {
  const escaped = value.replaceAll(/[\\"]/g, (found) => `\\${found}`).replaceAll('\n', '\\n');
  return `"${escaped}"`;
}

async function readHead(
  config: readonly string[],
  signal: AbortSignal,
  display: string,
): Promise<Pick<Opened & { kind: 'body' }, 'totalBytes' | 'validators'>> {
  const { stdout, exit } = startCurl([...config, 'head', 'max-time = 60'], signal);
  const [headers, [status]] = await Promise.all([text(stdout), exit]);
  checkStatus(status, signal, display);
  const length = /^content-length: (\d+)/im.exec(headers)?.[1];
  const lastModified = /^last-modified:(.*)$/im.exec(headers)?.[1]?.trim() ?? null;
  return {
    totalBytes: length === undefined ? null : Number(length),
    validators: { etag: null, lastModified },
  };
}

async function* readBody(
  config: readonly string[],
  signal: AbortSignal,
  display: string,
): AsyncGenerator<Buffer, void> {
  const { stdout, exit, kill } = startCurl(config, signal);
  try {
    // Without an encoding the chunks are Buffers.
    for await (const chunk of stdout as AsyncIterable<Buffer>) yield chunk;
    const [status] = await exit;
    if (status === PARTIAL_FILE) throw new TruncatedError('the server closed the connection early');
    checkStatus(status, signal, display);
  } finally {
    kill();
    await exit;
  }
}

const CURL_OPTIONS = [
  ...['--disable', '--silent', '--proto', '=ftp', '--noproxy', '*', '--ftp-skip-pasv-ip'],
  ...['--connect-timeout', '30', '--speed-limit', '1', '--speed-time', '60'],
];

function startCurl(config: readonly string[], signal: AbortSignal) {
  const mortal = tieToDaemon('curl', [...CURL_OPTIONS, '--config', '-']);
  const { child, exit, kill } = launchProgram([mortal.command, ...mortal.args], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // Both are pipes.
  const { stdin, stdout } = child as ChildProcessByStdio<Writable, Readable, null>;
  const stop = (): void => kill();
  signal.addEventListener('abort', stop);
  const leave = (): void => signal.removeEventListener('abort', stop);
  exit.then(leave, leave);
  if (signal.aborted) stop();
  stdin.on('error', () => undefined); // curl ended early; its status has the reason
  stdin.end(`${config.join('\n')}\n`);
  return { stdout, exit, kill };
}

function checkStatus(status: number | null, signal: AbortSignal, display: string): void {
  signal.throwIfAborted();
  if (status === 0) return;
  const reason = permanent[status ?? 0];
  if (reason) throw failure(display, `${reason} (curl status ${status})`);
  throw new Error(`curl ended with status ${status}`);
}

function failure(display: string, reason: string): AppError {
  return new AppError('DOWNLOAD_FAILED', `cannot download ${display}: ${reason}`, {
    details: { url: display },
    hint: 'Check the URL, and the user and password if the server needs them.',
  });
}
