import type { PackageRepository } from '#shared/contract/boot-env.ts';

export interface InstalledSystem {
  /** Such as `rocky-9` or `fedora-40`. */
  readonly name: string;
  /** Such as `9` or `9.4`; empty when the BootEnv has none. */
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

/** One `url` or `repo` line. Without a name it is the installation source. */
export interface KickstartSource {
  readonly name?: string;
  readonly baseUrl: string;
}

/** Writes the commands that make Anaconda install from sources. Pure. @param proxy URL, or null */
export function kickstartLines(
  sources: readonly KickstartSource[],
  system: InstalledSystem,
  proxy: string | null,
): string {
  const { proxySince, installUntil } = system.name.startsWith('fedora')
    ? RELEASES.fedora
    : RELEASES.rhel;
  const release = releaseOf(system);
  // An unknown release is treated as the newest.
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

/** Returns the release number: 9 of `9.4`, of `rocky-9` and of `rhel-server-9-dvd`. */
function releaseOf({ name, version }: InstalledSystem): number | null {
  const [, digits] = /^(\d{1,4})/.exec(version) ?? /-(\d{1,4})/.exec(name) ?? [];
  return digits === undefined ? null : Number(digits);
}

/**
 * Writes a file of yum or dnf. Entries of package-repositories have no key, so that signatures of
 * packages are not checked, as in dr-provision. Pure.
 */
export function yumLines(parts: readonly Required<KickstartSource>[]): string {
  return parts
    .map(({ name, baseUrl }) =>
      [`[${name}]`, `name=${name}`, `baseurl=${baseUrl}`, 'enabled=1', 'gpgcheck=0', ''].join('\n'),
    )
    .join('\n');
}

/** Whether a proxy can fetch from a repository. A proxy cannot reach the channel's addresses. */
export function isBehindProxy({ url }: PackageRepository, serviceHost: string): boolean {
  return new URL(url).hostname !== serviceHost;
}
