import type { PackageRepository } from '#shared/contract/boot-env.ts';

/** The system that is installed, as a BootEnv names it. */
export interface InstalledSystem {
  /** `rocky-9`, `fedora-40`. */
  readonly name: string;
  /** `9`, `9.4`; empty where the BootEnv has none. */
  readonly version: string;
}

/**
 * Releases that changed commands of Kickstart. `install` was always the default, and is an error
 * since Fedora 34 and RHEL 9; `--proxy` exists since Fedora 13 and RHEL 6. Source: the command
 * tables of pykickstart.
 */
const RELEASES = {
  fedora: { proxySince: 13, installUntil: 33 },
  rhel: { proxySince: 6, installUntil: 8 },
} as const;

/** One `url` or `repo` line: a name that is absent makes it the installation source. */
export interface KickstartSource {
  readonly name?: string;
  readonly baseUrl: string;
}

/** The commands that make Anaconda install from sources. Pure. @param proxy of them, or null */
export function kickstartLines(
  sources: readonly KickstartSource[],
  system: InstalledSystem,
  proxy: string | null,
): string {
  const { proxySince, installUntil } = system.name.startsWith('fedora')
    ? RELEASES.fedora
    : RELEASES.rhel;
  const release = releaseOf(system);
  // Without a release the newest is assumed.
  const option =
    proxy !== null && (release ?? proxySince) >= proxySince ? ` --proxy="${proxy}"` : '';
  const hasInstall = release !== null && release <= installUntil;
  return sources
    .map(({ name, baseUrl }) =>
      name === undefined
        ? `${hasInstall ? 'install\n' : ''}url --url=${baseUrl}${option}`
        : `repo --name="${name}" --baseurl=${baseUrl}${option}`,
    )
    .join('\n');
}

/** The number of the release: 9 of `9.4`, of `rocky-9` and of `rhel-server-9-dvd`. */
function releaseOf({ name, version }: InstalledSystem): number | null {
  const [, digits] = /^(\d{1,4})/.exec(version) ?? /-(\d{1,4})/.exec(name) ?? [];
  return digits === undefined ? null : Number(digits);
}

/**
 * A file of yum or dnf. The entries of package-repositories name no key, so that packages are not
 * compared with one, as in dr-provision. Pure.
 */
export function yumLines(parts: readonly Required<KickstartSource>[]): string {
  return parts
    .map(({ name, baseUrl }) =>
      [`[${name}]`, `name=${name}`, `baseurl=${baseUrl}`, 'enabled=1', 'gpgcheck=0', ''].join('\n'),
    )
    .join('\n');
}

/** Whether a proxy can fetch from a repository: it reaches no address of the channel. */
export function isBehindProxy({ url }: PackageRepository, serviceHost: string): boolean {
  return new URL(url).hostname !== serviceHost;
}
