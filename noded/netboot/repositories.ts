import type { PackageRepository } from '#shared/contract/boot-env.ts';
import { AMD64_NAMES } from '#shared/contract/boot-env.ts';
import { kickstartLines, yumLines, type InstalledSystem } from './kickstart-lines.ts';

/** Package managers, by the distribution's name in dr-provision's names of systems. */
const REPO_TYPES: ReadonlyMap<string, 'apt' | 'yum' | 'zypp'> = new Map([
  ...(['debian', 'ubuntu', 'linuxmint', 'devuan'] as const).map((name) => [name, 'apt'] as const),
  ...(['suse', 'sles', 'opensuse'] as const).map((name) => [name, 'zypp'] as const),
  ...[
    ...['almalinux', 'amzn', 'centos', 'fedora', 'ol', 'oraclelinux', 'photon', 'redhat'],
    ...['rhel', 'rocky', 'scientificlinux'],
  ].map((name) => [name, 'yum'] as const),
]);

/** A file of archives that Debian's packages can be installed from. */
export const STABLE_RELEASE = 'dists/stable/Release';

export type RepoType = 'apt' | 'yum' | 'zypp';

/** Returns the repository's type: its own field, else by its first system's name. */
export function repoTypeOf({ repoType, os }: PackageRepository): RepoType | null {
  if (repoType !== '') return repoType;
  const family = /^[a-z]+/.exec((os[0] ?? '').toLowerCase())?.[0] ?? '';
  return REPO_TYPES.get(family) ?? null;
}

function isAmd64({ arch }: PackageRepository): boolean {
  return arch === 'any' || AMD64_NAMES.includes(arch);
}

export function machineRepositories(
  all: readonly PackageRepository[],
  osName: string,
): readonly PackageRepository[] {
  return all.filter((repository) => repository.os.includes(osName) && isAmd64(repository));
}

/** Sources that an instance reaches by its channel during an installation. */
export interface InstallPlaces {
  readonly archive: {
    readonly name: string;
    readonly url: string;
    /** Whether it has {@link STABLE_RELEASE}. */
    readonly hasRelease: boolean;
  } | null;
  /** Returns the channel's URL for a package mirror's URL; null for any other URL. */
  readonly mirrorUrl: (url: string) => string | null;
}

/**
 * Returns the sources of an installation: one source, and at most one of security updates. An
 * archive with packages comes first, as in dr-provision. URLs of package mirrors become the
 * channel's, which need no network of the instance. Other URLs stay.
 */
export function installRepositories(
  all: readonly PackageRepository[],
  osName: string,
  places: InstallPlaces,
): readonly PackageRepository[] {
  const own = machineRepositories(all, osName);
  const local = localRepository(osName, places);
  const sources = local ? [local] : own.filter(({ installSource }) => installSource).slice(0, 1);
  return [
    ...sources,
    ...own.filter((each) => each.securitySource && !each.installSource).slice(0, 1),
  ].map((each) => ({ ...each, url: places.mirrorUrl(each.url) ?? each.url }));
}

/** Returns the opened archive as a repository; null for Debian's installers without packages. */
function localRepository(osName: string, { archive }: InstallPlaces): PackageRepository | null {
  if (archive === null) return null;
  const { name, url, hasRelease } = archive;
  const repository: PackageRepository = {
    tag: name,
    os: [osName],
    arch: 'amd64',
    url,
    bootloc: '',
    packageType: '',
    repoType: '',
    installSource: true,
    securitySource: false,
    distribution: '',
    components: [],
  };
  if (repoTypeOf(repository) !== 'apt') return repository;
  if (!hasRelease) return null;
  return { ...repository, distribution: 'stable', components: ['main', 'restricted'] };
}

/** Returns the URL of a repository's kernels. */
export function bootUrlOf({ bootloc, url }: PackageRepository): string {
  return bootloc === '' ? url : bootloc;
}

/** Returns the URL of a repository's component, with the package manager's wildcards. */
export function urlFor(repository: PackageRepository, component: string): string {
  const { url, distribution, os } = repository;
  if (repoTypeOf(repository) !== 'yum' || distribution === '' || component === '') return url;
  const base = `${withoutEndSlash(url)}/${distribution}/${component}/$basearch`;
  // CentOS has one more folder from release 8 on.
  return os.some((name) => /^centos-(?:[89]|\d{2})/.test(name)) ? `${base}/os` : base;
}

/** Writes the repository as a package manager's configuration. */
export function repositoryLines(repository: PackageRepository): string {
  const { tag, url, distribution, components } = repository;
  switch (repoTypeOf(repository)) {
    case 'apt':
      return `deb ${[url, distribution, ...components].filter((part) => part !== '').join(' ')}\n`;
    case 'zypp':
      return `[${tag}]\nname=${tag}\nenabled=1\nautorefresh=1\nbaseurl=${url}\ntype=rpm-md\n`;
    case 'yum':
      return yumLines(yumParts(repository));
    case null:
      return '';
  }
}

/**
 * Writes the repository as installer answers: Debian's preseed, Red Hat's kickstart, SUSE's
 * AutoYaST.
 * @param proxy returns the URL of the proxy for the repository, or null; called only where it is
 * used
 */
export function installLines(
  repository: PackageRepository,
  system: InstalledSystem,
  proxy: () => string | null,
): string {
  const { url, securitySource, installSource } = repository;
  switch (repoTypeOf(repository)) {
    case 'apt':
      return preseedLines(repository);
    case 'yum':
      return kickstartLines(
        installSource ? [{ baseUrl: url }] : yumParts(repository),
        system,
        proxy(),
      );
    case 'zypp':
      return installSource || securitySource
        ? `<listentry><media_url><![CDATA[${url}]]></media_url></listentry>`
        : '';
    case null:
      return '';
  }
}

function yumParts(
  repository: PackageRepository,
): readonly { readonly name: string; readonly baseUrl: string }[] {
  const { tag, url, components, distribution } = repository;
  if (components.length === 0 || distribution === '') return [{ name: tag, baseUrl: url }];
  return components.map((component) => ({
    name: `${tag}-${component}`,
    baseUrl: urlFor(repository, component),
  }));
}

function preseedLines({ url, installSource }: PackageRepository): string {
  const { protocol, host, pathname } = new URL(url);
  const path = withoutEndSlash(pathname) || '/';
  if (!installSource)
    return `d-i apt-setup/security_host string ${host}\nd-i apt-setup/security_path string ${path}`;
  return [
    `d-i mirror/protocol string ${protocol.slice(0, -1)}`,
    `d-i mirror/http/hostname string ${host}`,
    `d-i mirror/http/directory string ${path}`,
  ].join('\n');
}

function withoutEndSlash(text: string): string {
  return text.endsWith('/') ? text.slice(0, -1) : text;
}
