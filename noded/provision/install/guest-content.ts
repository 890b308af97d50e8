import { ownValue } from '#shared/json/own-value.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { ContentProvider } from '../../net/metad-link/content-server.ts';
import type { FindBootTree } from '../../net/metad-link/send-boot.ts';
import type { IssueToken } from '../../net/metad-link/send-token.ts';
import type { OpenRelay } from '../../net/relay/relays.ts';
import type { FindService } from '../../net/metad-link/service-relay.ts';
import { askMirror } from '../../content/downloads/ask-mirror.ts';
import type { ActiveInstall } from './install-request.ts';
import type { OpenInstallPackage } from './open-install-package.ts';

export interface GuestContentDependencies {
  /** Running installations by instance. */
  readonly activeInstalls: ReadonlyMap<string, ActiveInstall>;
  readonly findService: FindService;
  readonly clusters: ClusterRepository;
  readonly openPackage: OpenInstallPackage;
  readonly findBootTree: FindBootTree;
  readonly issueToken: IssueToken;
  readonly openRelay: OpenRelay;
}

/**
 * Serves metad on behalf of this node's guests: bulk content during an installation, boot files of
 * the channel, identity tokens, relays, and host services.
 */
export function createGuestContent({
  activeInstalls,
  findService,
  clusters,
  openPackage,
  findBootTree,
  issueToken,
  openRelay,
}: GuestContentDependencies): ContentProvider {
  return {
    findService,
    findBootTree,
    issueToken,
    openRelay,
    openImage: async (uuid) => activeInstalls.get(uuid)?.image ?? undefined,
    openMirror: async (uuid, name, request) => {
      if (!activeInstalls.get(uuid)) return undefined;
      const { packageMirrors = {} } = await clusters.load();
      const base = ownValue(packageMirrors, name);
      return base === undefined ? undefined : askMirror(base, request);
    },
    openPackage: async (uuid, signal) => {
      const active = activeInstalls.get(uuid);
      return active && openPackage(active, signal);
    },
  };
}
