import { AppError } from '#shared/errors/app-error.ts';
import { readOsRelease } from './os-release.ts';
import type { RootFiles } from './root-files.ts';

export interface PackageFields {
  readonly install: readonly string[];
  readonly remove: readonly string[];
  readonly refresh: boolean;
  readonly upgrade: boolean;
}

export interface PackageWorld {
  readonly files: RootFiles;
  /** GNT_MIRROR_<NAME>: the allowed package mirrors. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
  /** Runs a program of the instance. Throws when it fails. */
  readonly run: (
    argv: readonly string[],
    environment: Readonly<Record<string, string>>,
  ) => Promise<void>;
}

/** Temporary sources and lists, removed afterwards. */
const SOURCES = '/etc/apt/gnt-installation.list';
const LISTS = '/var/lib/apt/gnt-lists';
const REPOSITORIES = '/etc/apk/gnt-installation';
/** Prevents packages from starting services (invoke-rc.d(8)), since the instance does not run. */
const POLICY = '/usr/sbin/policy-rc.d';
const POLICY_SCRIPT = '#!/bin/sh\nexit 101\n';
const ROOT_FILE = { uid: 0, gid: 0, mode: 0o644 };

export function needsMirror({ install, refresh, upgrade }: PackageFields): boolean {
  return install.length > 0 || refresh || upgrade;
}

/**
 * Installs and removes packages with the instance's own tool, from the allowed mirrors of its own
 * sources: refresh, upgrade, install, remove, in yip's order.
 * @throws AppError HOOK_FAILED
 */
export async function applyPackages(fields: PackageFields, world: PackageWorld): Promise<void> {
  const { ID = '', ID_LIKE = '' } = readOsRelease(world.files) ?? {};
  const isLike = (name: string): boolean => [ID, ...ID_LIKE.split(' ')].includes(name);
  if (isLike('debian') || isLike('ubuntu')) return await applyApt(fields, world);
  if (isLike('alpine')) return await applyApk(fields, world);
  throw new AppError('HOOK_FAILED', `packages of '${ID}' cannot be installed from a mirror`, {
    hint: 'A command can use the mirror: $GNT_MIRROR_NAME',
  });
}

async function applyApt(fields: PackageFields, world: PackageWorld): Promise<void> {
  const { files } = world;
  const options = [
    ...['-y', '-o', `Dir::Etc::SourceList=${SOURCES}`, '-o', 'Dir::Etc::SourceParts=/dev/null'],
    ...['-o', `Dir::State::Lists=${LISTS}`, '-o', 'Dpkg::Options::=--force-confold'],
  ];
  const apt = (...args: readonly string[]): Promise<void> =>
    world.run(['apt-get', ...options, ...args], { DEBIAN_FRONTEND: 'noninteractive' });
  const isPolicyOurs = !files.exists(POLICY);
  try {
    if (isPolicyOurs) await files.write(POLICY, POLICY_SCRIPT, { ...ROOT_FILE, mode: 0o755 });
    if (needsMirror(fields)) {
      const sources = readAptSources(world).map((line) => `${line}\n`);
      await files.write(SOURCES, sources.join(''), ROOT_FILE);
      files.makeDirectory(`${LISTS}/partial`, { ...ROOT_FILE, mode: 0o755 });
      // Existing lists are of other addresses.
      await apt('update');
    }
    if (fields.upgrade) await apt('upgrade');
    if (fields.install.length > 0)
      await apt('--no-install-recommends', 'install', '--', ...fields.install);
    if (fields.remove.length > 0) await apt('remove', '--', ...fields.remove);
  } finally {
    for (const path of [SOURCES, LISTS, ...(isPolicyOurs ? [POLICY] : [])]) files.remove(path);
  }
}

async function applyApk(fields: PackageFields, world: PackageWorld): Promise<void> {
  const { files } = world;
  const apk = (...args: readonly string[]): Promise<void> =>
    world.run(['apk', '--no-cache', '--repositories-file', REPOSITORIES, ...args], {});
  try {
    const lines = needsMirror(fields) ? readApkRepositories(world) : [];
    await files.write(REPOSITORIES, lines.map((line) => `${line}\n`).join(''), ROOT_FILE);
    if (fields.refresh) await apk('update');
    if (fields.upgrade) await apk('upgrade');
    if (fields.install.length > 0) await apk('add', '--', ...fields.install);
    if (fields.remove.length > 0) await apk('del', '--', ...fields.remove);
  } finally {
    files.remove(REPOSITORIES);
  }
}

function readAptSources(world: PackageWorld): string[] {
  const { files } = world;
  const parts = files
    .list('/etc/apt/sources.list.d')
    .map((name) => `/etc/apt/sources.list.d/${name}`);
  const lines = ['/etc/apt/sources.list', ...parts].flatMap((path) => {
    const text = files.read(path) ?? '';
    if (path.endsWith('.sources')) return parseDeb822(text);
    return path.endsWith('.list') ? text.split('\n').filter((line) => /^deb\s/.test(line)) : [];
  });
  return mapToMirrors(lines, /^(deb\s+(?:\[[^\]]*\]\s+)?)(\S+)((?:\s[^]*)?)$/, world);
}

/** Converts sources.list(5)'s deb822 format to one line for each URI and suite. */
function parseDeb822(text: string): string[] {
  return text.split(/\n\s*\n/).flatMap((paragraph) => {
    const field = (name: string): string[] =>
      new RegExp(`^${name}:[ \\t]*(.*(?:\\n[ \\t].*)*)`, 'im')
        .exec(paragraph)?.[1]
        ?.split(/\s+/)
        .filter((word) => word !== '') ?? [];
    const [isEnabled = 'yes'] = field('Enabled');
    if (isEnabled === 'no' || !field('Types').includes('deb')) return [];
    const [key] = field('Signed-By');
    const options = key?.startsWith('/') === true ? `[signed-by=${key}] ` : '';
    const components = field('Components').join(' ');
    return field('URIs').flatMap((uri) =>
      field('Suites').map((suite) => `deb ${options}${uri} ${suite} ${components}`),
    );
  });
}

function readApkRepositories(world: PackageWorld): string[] {
  const lines = (world.files.read('/etc/apk/repositories') ?? '').split('\n');
  return mapToMirrors(lines, /^((?:@\S+\s+)?)(https?:\S+)()$/, world);
}

/**
 * Replaces archives by the mirror that has the name of the archive's folder: `debian` for
 * http://deb.debian.org/debian. Logs archives without a mirror, whose packages will be missing.
 */
function mapToMirrors(
  lines: readonly string[],
  shape: RegExp,
  { environment, log }: PackageWorld,
): string[] {
  const mapped: string[] = [];
  for (const line of lines) {
    const [, before = '', uri = '', after = ''] = shape.exec(line.trim()) ?? [];
    const found = uri === '' ? null : findMirror(uri, environment);
    if (found !== null) mapped.push(`${before}${found}${after}`);
    else if (uri !== '') log(`packages: skipped ${withoutLogin(uri)}, no mirror is allowed for it`);
  }
  if (mapped.length > 0) return mapped;
  throw new AppError('HOOK_FAILED', 'none of its package sources has an allowed mirror', {
    hint: 'Name the mirror after the folder of the archive, for example: gnt-cluster modify --package-mirror debian=URL',
  });
}

function withoutLogin(uri: string): string {
  return uri.replace(/\/\/[^/]*@/, '//').slice(0, 200);
}

function findMirror(uri: string, environment: Readonly<Record<string, string>>): string | null {
  if (!URL.canParse(uri)) return null;
  const parts = new URL(uri).pathname.split('/').filter((part) => part !== '');
  for (const [index, part] of parts.entries()) {
    const mirror = environment[`GNT_MIRROR_${part.toUpperCase().replaceAll('-', '_')}`];
    if (mirror !== undefined) return [mirror, ...parts.slice(index + 1)].join('/');
  }
  return null;
}
