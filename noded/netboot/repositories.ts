import type { PackageRepository } from '#shared/contract/boot-env.ts';
import { AMD64_NAMES } from '#shared/contract/boot-env.ts';
import { kickstartLines, yumLines, type InstalledSystem } from './kickstart-lines.ts';

/** How packages are got, by the distribution's name in dr-provision's names of systems. */
const REPO_TYPES: ReadonlyMap<string, 'apt' | 'yum' | 'zypp'> = new Map([
  ...(['debian', 'ubuntu', 'linuxmint', 'devuan'] as const).map((name) => [name, 'apt'] as const),
  ...(['suse', 'sles', 'opensuse'] as const).map((name) => [name, 'zypp'] as const),
  ...[
    ...['almalinux', 'amzn', 'centos', 'fedora', 'ol', 'oraclelinux', 'photon', 'redhat'],
    ...['rhel', 'rocky', 'scientificlinux'],
  ].map((name) => [name, 'yum'] as const),
]);

/** What an archive has that Debian's packages can be installed from. */
export const STABLE_RELEASE = 'dists/stable/Release';

export type RepoType = 'apt' | 'yum' | 'zypp';

/** The way of a repository: its own word, else what its first system's name says. */
export function repoTypeOf({ repoType, os }: PackageRepository): RepoType | null {
  if (repoType !== '') return repoType;
  const family = /^[a-z]+/.exec((os[0] ?? '').toLowerCase())?.[0] ?? '';
  return REPO_TYPES.get(family) ?? null;
}

function isAmd64({ arch }: PackageRepository): boolean {
  return arch === 'any' || AMD64_NAMES.includes(arch);
}

/** What a machine of a system may install from. */
export function machineRepositories(
  all: readonly PackageRepository[],
  osName: string,
): readonly PackageRepository[] {
  return all.filter((repository) => repository.os.includes(osName) && isAmd64(repository));
}

/** What a machine that is being installed reaches, on a network of its own, behind its channel. */
export interface InstallPlaces {
  /** The archive that it boots from, opened. */
  readonly archive: {
    readonly name: string;
    readonly url: string;
    /** Whether it has {@link STABLE_RELEASE}. */
    readonly hasRelease: boolean;
  } | null;
  /** The channel's address of what a package mirror allows; null for anything else. */
  readonly mirrorUrl: (url: string) => string | null;
}

/**
 * What it is installed from: one source, and one of security updates at most. An archive with
 * packages comes first, as in dr-provision; what a mirror shows has the channel's address, which
 * needs no network of the machine, and what none shows its own.
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

/** The opened archive as one; null of Debian's that have an installer and no packages. */
function localRepository(osName: string, { archive }: InstallPlaces): PackageRepository | null {
  if (archive === null) return null;
  const { name, url, hasRelease } = archive;
  const repository: PackageRepository = {
    ...{ tag: name, os: [osName], arch: 'amd64', url, bootloc: '', packageType: '', repoType: '' },
    ...{ installSource: true, securitySource: false, distribution: '', components: [] },
  };
  if (repoTypeOf(repository) !== 'apt') return repository;
  if (!hasRelease) return null;
  return { ...repository, distribution: 'stable', components: ['main', 'restricted'] };
}

/** Where a repository's kernels are. */
export function bootUrlOf({ bootloc, url }: PackageRepository): string {
  return bootloc === '' ? url : bootloc;
}

/** The URL of one of a repository's components, the package manager's wildcards in it. */
export function urlFor(repository: PackageRepository, component: string): string {
  const { url, distribution, os } = repository;
  if (repoTypeOf(repository) !== 'yum' || distribution === '' || component === '') return url;
  const base = `${withoutEndSlash(url)}/${distribution}/${component}/$basearch`;
  // From release 8 on, CentOS has a folder more.
  return os.some((name) => /^centos-(?:[89]|\d{2})/.test(name)) ? `${base}/os` : base;
}

/** As a package manager's file has it. */
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
 * As an installer's answers have it: Debian's preseed, RedHat's kickstart, SUSE's AutoYaST.
 * @param proxy returns the URL of the proxy for the repository, or null; asked where it has a place
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
