import { constants } from 'node:fs';
import { open, readFile, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { splitOsName } from '#shared/contract/os-name.ts';
import { parseRange } from '#shared/http/parse-range.ts';
import { reveal } from '#shared/secret/secret.ts';
import { MIB } from '#shared/units/bytes.ts';
import { bytesLeaf } from '../view/leaf.ts';
import type { Leaf } from '../view/leaf.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ServeStream } from '../http/content-proxy.ts';
import { sendText } from '../http/reply.ts';
import type { ServedView } from '../view/served-view.ts';
import type { GanetiInstance } from './instance-dict.ts';

/** Scripts that Ganeti's daemon serves. */
const SCRIPTS = ['create', 'export', 'import', 'rename', 'verify'] as const;
const OS_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const MAX_SCRIPT_BYTES = 16 * MIB;
/** OS parameters that name a package, and the path that serves it. */
const PACKAGES = [
  ['os-package', 'package', 'os/package'],
  ['os-install-package', 'install-package', 'os/os-install-package'],
] as const;

export interface GanetiFileOptions {
  readonly osSearchPath: readonly string[];
  /**
   * Only files below these are served as packages: the owner of the instance sets the parameter.
   */
  readonly packageDirectories: readonly string[];
}

export async function ganetiLeaves(
  instance: GanetiInstance,
  options: GanetiFileOptions,
): Promise<ReadonlyMap<string, Leaf>> {
  const leaves = new Map<string, Leaf>();
  // Ganeti's daemon looked for a folder with the variant in its name, and found none.
  const { name: osName } = splitOsName(instance.os);
  if (OS_NAME.test(osName)) {
    for (const script of SCRIPTS) {
      const bytes = await readScript(options.osSearchPath, osName, script);
      if (bytes) leaves.set(`os/scripts/${script}`, bytesLeaf(bytes));
    }
  }
  for (const [parameter, source, path] of PACKAGES) {
    if (instance.parameters.get(parameter)?.visibility === 'public') {
      leaves.set(path, { kind: 'live', source });
    }
  }
  return leaves;
}

async function readScript(
  searchPath: readonly string[],
  osName: string,
  script: string,
): Promise<Buffer | null> {
  for (const folder of searchPath) {
    const bytes = await readFile(join(folder, osName, script)).catch(() => null);
    if (bytes && bytes.length <= MAX_SCRIPT_BYTES) return bytes;
  }
  return null;
}

/** Streams packages from the directories that the administrator named. */
export function createPackageServer(directories: readonly string[]): ServeStream {
  return (exchange, name) => {
    void servePackage(exchange, name, directories).catch(() => exchange.response.destroy());
  };
}

async function servePackage(
  exchange: Exchange,
  name: string,
  directories: readonly string[],
): Promise<void> {
  const { request, response } = exchange;
  const file = await openPackage(exchange.instance.view, name, directories);
  if (!file) return sendText(response, 404, 'the host has no such package');
  const { size, mtimeMs } = await file.stat();
  const range = parseRange(request.headers.range, size);
  if (range === 'unsatisfiable') {
    await file.close();
    return sendText(response, 416, 'range not satisfiable', ['Content-Range', `bytes */${size}`]);
  }
  const [start, end] = range ?? [0, size - 1];
  response.writeHead(range ? 206 : 200, [
    'Content-Type',
    'application/octet-stream',
    'Content-Length',
    String(end - start + 1),
    'ETag',
    `"${size}-${Math.trunc(mtimeMs)}"`,
    'Accept-Ranges',
    'bytes',
    'Cache-Control',
    'no-store',
    ...(range ? ['Content-Range', `bytes ${start}-${end}/${size}`] : []),
  ]);
  if (request.method === 'HEAD' || size === 0 || response.destroyed) {
    await file.close();
    response.end();
    return;
  }
  const stream = file.createReadStream({ start, end });
  stream.on('error', () => response.destroy());
  response.on('close', () => stream.destroy());
  stream.pipe(response);
}

async function openPackage(
  view: ServedView,
  name: string,
  directories: readonly string[],
): Promise<FileHandle | null> {
  const parameter = PACKAGES.find(([, source]) => source === name)?.[0];
  const value = parameter && view.osParameters.get(parameter)?.value;
  if (!value) return null;
  try {
    // Links are resolved first, so that none leads out of the directories.
    const path = await realpath(reveal(value));
    const allowed = await Promise.all(
      directories.map((folder) => realpath(folder).catch(() => null)),
    );
    if (!allowed.some((folder) => folder !== null && path.startsWith(folder + sep))) return null;
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile() && basename(path) !== '') return file;
    await file.close();
    return null;
  } catch {
    // The guest learns only that the package is missing or not readable.
    return null;
  }
}
