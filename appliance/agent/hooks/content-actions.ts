import { posix } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { AppError } from '#shared/errors/app-error.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { tryCommand } from '../process/command.ts';
import { findId } from './accounts.ts';
import { hostName, type Ownership, type StepFields } from './fields.ts';
import type { FileAttributes, RootFiles } from './root-files.ts';

type FileFields = StepFields['files'][number];
type DownloadFields = StepFields['downloads'][number];
type DnsFields = NonNullable<StepFields['dns']>;

export const ROOT_FILE: FileAttributes = { mode: 0o644, uid: 0, gid: 0 };
const SYSCTL_FILE = '/etc/sysctl.d/99-gnt-hooks.conf';
const LOCAL_HOST = '127.0.0.1';

export function makeDirectory(files: RootFiles, fields: StepFields['directories'][number]): void {
  files.makeDirectory(fields.path, attributesOf(files, fields, fields.permissions));
}

export async function writeFile(files: RootFiles, fields: FileFields): Promise<void> {
  const attributes = attributesOf(files, fields, fields.permissions);
  makeParent(files, fields.path, attributes);
  await files.write(fields.path, decode(fields), attributes);
}

/**
 * Downloads by curl, which follows redirects and supports TLS. In a folder the file gets the URL's
 * last name, as with yip.
 */
export async function download(files: RootFiles, fields: DownloadFields): Promise<void> {
  const attributes = attributesOf(files, fields, fields.permissions);
  const isFolder = fields.path.endsWith('/') || files.isDirectory(fields.path);
  const path = isFolder
    ? posix.join(fields.path, posix.basename(new URL(fields.url).pathname) || 'index.html')
    : fields.path;
  makeParent(files, path, attributes);
  await files.fill(path, attributes, (fd) => fetchInto(fd, fields));
}

export async function writeDns(files: RootFiles, fields: DnsFields): Promise<void> {
  if (fields.nameservers.length === 0) return;
  const lines = [
    ...(fields.search.length > 0 ? [`search ${fields.search.join(' ')}`] : []),
    ...fields.nameservers.map((server) => `nameserver ${server}`),
    ...(fields.options.length > 0 ? [`options ${fields.options.join(' ')}`] : []),
  ];
  makeParent(files, fields.path, ROOT_FILE);
  // In an image this is often a link to a file that a daemon writes at run time.
  await files.write(fields.path, `${lines.join('\n')}\n`, ROOT_FILE, { replaceLink: true });
}

export async function setHostname(files: RootFiles, name: string): Promise<void> {
  // A rendered template can have any value.
  if (!hostName.safeParse(name).success)
    throw new AppError('HOOK_FAILED', 'the result of the template is not a host name');
  makeParent(files, '/etc/hostname', ROOT_FILE);
  await files.write('/etc/hostname', `${name}\n`, ROOT_FILE);
  const entry = `${LOCAL_HOST} localhost ${name}`;
  await files.edit(
    '/etc/hosts',
    (text) => {
      const lines = splitLines(text);
      if (!lines.some(isLocalHost)) lines.unshift(entry);
      return joinLines(lines.map((line) => (isLocalHost(line) ? entry : line)));
    },
    ROOT_FILE,
  );
}

/** Sets values for the instance's own boot; its kernel does not run yet. */
export async function setSysctl(files: RootFiles, values: StepFields['sysctl']): Promise<void> {
  const lines = Object.entries(values).map(([key, value]) => [key, `${key} = ${value}`] as const);
  await setLines(files, SYSCTL_FILE, lines, (line) => line.split('=')[0]?.trim());
}

export async function setEnvironment(files: RootFiles, fields: StepFields): Promise<void> {
  const lines = Object.entries(fields.environment).map(
    ([key, value]) => [key, `${key}=${quote(value)}`] as const,
  );
  await setLines(
    files,
    fields.environment_file,
    lines,
    (line) => /^(?:export )?(\w+)=/.exec(line)?.[1],
  );
}

export async function writeOverride(
  files: RootFiles,
  service: string,
  name: string,
  content: string,
): Promise<void> {
  const unit = service.endsWith('.service') ? service : `${service}.service`;
  const file = name.endsWith('.conf') ? name : `${name}.conf`;
  const path = `/etc/systemd/system/${unit}.d/${file}`;
  makeParent(files, path, ROOT_FILE);
  await files.write(path, content, ROOT_FILE);
}

async function setLines(
  files: RootFiles,
  path: string,
  entries: readonly (readonly [key: string, line: string])[],
  keyOf: (line: string) => string | undefined,
): Promise<void> {
  if (entries.length === 0) return;
  makeParent(files, path, ROOT_FILE);
  const wanted = new Map(entries);
  await files.edit(
    path,
    (text) => {
      const kept = splitLines(text).filter((line) => !wanted.has(keyOf(line) ?? ''));
      return joinLines([...kept, ...wanted.values()]);
    },
    ROOT_FILE,
  );
}

/** Creates the parent as yip does: with the file's owner and mode, and the right to enter. */
export function makeParent(files: RootFiles, path: string, attributes: FileAttributes): void {
  const parent = posix.dirname(path);
  if (files.isDirectory(parent)) return;
  files.makeDirectory(parent, {
    ...attributes,
    mode: attributes.mode < 0o700 ? attributes.mode + 0o100 : attributes.mode,
  });
}

function attributesOf(files: RootFiles, fields: Ownership, mode: number): FileAttributes {
  const named = fields.owner_string ?? fields.ownerstring;
  if (named === undefined) return { mode, uid: fields.owner ?? 0, gid: fields.group ?? 0 };
  const [user = '', group] = named.split(':');
  const uid = findId(files, '/etc/passwd', user);
  return {
    mode,
    uid,
    gid:
      group === undefined
        ? findId(files, '/etc/passwd', user, 3)
        : findId(files, '/etc/group', group),
  };
}

function decode({ content, encoding }: FileFields): Buffer {
  const isBase64 = encoding !== undefined && /b(ase)?64$/.test(encoding);
  const bytes = Buffer.from(content, isBase64 ? 'base64' : 'utf8');
  return encoding?.startsWith('gz') === true ? gunzipSync(bytes) : bytes;
}

async function fetchInto(fd: number, { url, timeout }: DownloadFields): Promise<void> {
  const args = ['--fail', '--silent', '--show-error', '--location', '--globoff'];
  args.push('--proto', '=http,https', '--proto-redir', '=http,https');
  if (timeout > 0) args.push('--max-time', String(timeout));
  // Passed by stdin, since the URL may hold a password and the process list shows arguments.
  const input = `url = "${url.replace(/["\\]/g, '\\$&')}"\n`;
  const { status, stderr } = await tryCommand('curl', [...args, '--config', '-'], {
    input,
    stdout: fd,
  });
  if (status === 0) return;
  const reason = lastLineOf(stderr) || `curl failed with status ${status}`;
  throw new AppError('HOOK_FAILED', `download failed: ${reason}`, {
    hint: 'An appliance reaches only its host. Add a mirror: gnt-cluster modify --package-mirror NAME=URL',
  });
}

/** Quotes as godotenv, which yip uses: whole numbers bare, others quoted. */
function quote(value: string): string {
  return /^-?\d+$/.test(value) ? value : `"${value.replace(/["\\$`!]/g, '\\$&')}"`;
}

function isLocalHost(line: string): boolean {
  return line.trim().split(/\s+/)[0] === LOCAL_HOST;
}

function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

const MODULES_FILE = '/etc/modules-load.d/gnt-hooks.conf';
const OPTIONS_FILE = '/etc/modprobe.d/gnt-hooks.conf';
/** The same path as yip's. */
const TIMESYNCD_FILE = '/etc/systemd/timesyncd.conf.d/10-yip.conf';

/** Lists modules and their parameters for the boot of the instance's own kernel. */
export async function setModules(files: RootFiles, modules: readonly string[]): Promise<void> {
  const words = modules.map((module) => module.trim().split(/\s+/));
  await addLines(
    files,
    MODULES_FILE,
    words.map(([name = '']) => name),
  );
  const withParameters = words.filter(({ length }) => length > 1);
  await addLines(
    files,
    OPTIONS_FILE,
    withParameters.map((parts) => `options ${parts.join(' ')}`),
  );
}

export async function setTimesyncd(
  files: RootFiles,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const keys = Object.keys(settings);
  if (keys.length === 0) return;
  makeParent(files, TIMESYNCD_FILE, ROOT_FILE);
  await files.edit(
    TIMESYNCD_FILE,
    (text) => {
      const kept = text
        .split('\n')
        .filter((line) => /^\w/.test(line) && !keys.includes(line.split('=')[0]?.trim() ?? ''));
      const added = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      return ['[Time]', ...kept, ...added, ''].join('\n');
    },
    ROOT_FILE,
  );
}

async function addLines(files: RootFiles, path: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  makeParent(files, path, ROOT_FILE);
  await files.edit(
    path,
    (text) => {
      const present = text.split('\n').filter((line) => line !== '');
      return [...new Set([...present, ...lines]), ''].join('\n');
    },
    ROOT_FILE,
  );
}
