import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { openPackage } from '../downloads/package-source.ts';
import type { ContentProvider } from '../metad-link/content-server.ts';
import type { FindService } from '../metad-link/service-relay.ts';
import { askMirror } from '../downloads/ask-mirror.ts';
import type { Installer } from './installer.ts';

export interface GuestContentDependencies {
  readonly activeInstall: Installer['activeInstall'];
  readonly findService: FindService;
  readonly clusters: ClusterRepository;
  readonly netrcFile: string;
}

/** What this node hands to metad for its guests: bulk content while they are installed, and services of the host. */
export function createGuestContent({
  activeInstall,
  findService,
  clusters,
  netrcFile,
}: GuestContentDependencies): ContentProvider {
  return {
    findService,
    openImage: async (uuid) => activeInstall(uuid)?.image ?? undefined,
    openMirror: async (uuid, name, request) => {
      if (!activeInstall(uuid)) return undefined;
      const { packageMirrors = {} } = await clusters.load();
      const base = Object.hasOwn(packageMirrors, name) ? packageMirrors[name] : undefined;
      return base === undefined ? undefined : askMirror(base, request);
    },
    openPackage: async (uuid, signal) => {
      const active = activeInstall(uuid);
      if (active?.instance.personalizationPackage == null) return undefined;
      const { packageUser, packagePassword } = active.secrets;
      return openPackage(active.instance.personalizationPackage, {
        signal,
        netrcFile,
        limits: downloadLimitsOf(await clusters.load()),
        ...(packageUser !== undefined && { user: packageUser }),
        ...(packagePassword !== undefined && { password: packagePassword }),
      });
    },
  };
}
