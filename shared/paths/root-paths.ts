import { join } from 'node:path';

/** Ganeti's default search path for OS definitions (`--with-os-search-path`). */
export const GANETI_OS_PATHS = [
  'srv/ganeti/os',
  'usr/local/lib/ganeti/os',
  'usr/lib/ganeti/os',
  'usr/share/ganeti/os',
] as const;

/** All paths below one root (`GNT_ROOT`). The only place that knows these names. */
export interface RootPaths {
  readonly root: string;
  readonly stateDir: string;
  readonly storeFile: string;
  /**
   * For a cluster with a common store: the choice of the store, the key of its records, and the
   * node's own key.
   */
  readonly storeChoiceFile: string;
  readonly clusterKeyFile: string;
  /** During a change of the cluster's key. */
  readonly nextClusterKeyFile: string;
  readonly formerClusterKeyFile: string;
  /** The replay guard's marks of a common store. */
  readonly seenRecordsFile: string;
  readonly nodeKeyFile: string;
  /** The boot of the host in which instances were last started. */
  readonly bootFile: string;
  readonly disksDir: string;
  /** Results of jobs and installations that the store does not have yet. */
  readonly outcomesDir: string;
  readonly imageCacheDir: string;
  /** Names of images, and imported images, a file each. */
  readonly cataloguesFile: string;
  readonly importedImagesDir: string;
  /** Unpacked archives that instances boot from. */
  readonly bootArchivesDir: string;
  readonly applianceDir: string;
  readonly importedAppliancesDir: string;
  /** Hooks that every build of the appliance includes. May be missing. */
  readonly applianceHooksFile: string;
  /**
   * Copies of OS definitions while their scripts run on the host; emptied when the daemon starts.
   */
  readonly hostCopiesDir: string;
  readonly runDir: string;
  readonly nodedSocket: string;
  /**
   * Directory that metad's user may enter: its control socket, and noded's content socket for it.
   */
  readonly metadDir: string;
  readonly metadControlSocket: string;
  /** Identity of the metad process; for root only. */
  readonly metadRecordFile: string;
  readonly contentSocket: string;
  readonly vmDir: string;
  /** End of this node's right to write shared disks; for root only. */
  readonly leaseFile: string;
  /** Boot files of instances, a file each; for root only. */
  readonly bootSourcesDir: string;
  /** Networks that the daemon creates, a folder each. */
  readonly networksDir: string;
  /** `gnt-channel` for scripts on the host, a folder for each; emptied when the daemon starts. */
  readonly channelCommandsDir: string;
  /** Processes that write for the daemon, for its successor; for root only. */
  readonly childrenDir: string;
  readonly logDir: string;
  /** Basic auth for image and package servers, by host, in netrc's format. May be missing. */
  readonly netrcFile: string;
  /** Hooks of the cluster, `*.yaml`. May be missing. */
  readonly hooksDir: string;
  /** The cluster's run lists: a folder each. */
  readonly runListsDir: string;
  readonly osSearchPath: readonly string[];
  /** Exports of instances, a directory each. */
  readonly exportDir: string;
  /**
   * Network namespace of the channel: `gnt-com`, with a suffix for other roots so that two nodes
   * fit on one host.
   */
  readonly networkNamespace: string;
  /** nft table of the host's namespace for instances with a user-mode NIC. */
  readonly machineWallTable: string;
}

export function createRootPaths(root: string): RootPaths {
  const stateDir = join(root, 'var/lib/gnt');
  const runDir = join(root, 'run/gnt');
  const metadDir = join(runDir, 'metad');
  return {
    root,
    stateDir,
    storeFile: join(stateDir, 'store.sqlite'),
    storeChoiceFile: join(stateDir, 'store.json'),
    clusterKeyFile: join(stateDir, 'cluster.key'),
    nextClusterKeyFile: join(stateDir, 'cluster.key.next'),
    formerClusterKeyFile: join(stateDir, 'cluster.key.before'),
    seenRecordsFile: join(stateDir, 'seen-records.sqlite'),
    nodeKeyFile: join(stateDir, 'node.key'),
    bootFile: join(stateDir, 'boot-id'),
    disksDir: join(stateDir, 'disks'),
    outcomesDir: join(stateDir, 'outcomes'),
    imageCacheDir: join(stateDir, 'images'),
    cataloguesFile: join(stateDir, 'catalogues.json'),
    importedImagesDir: join(stateDir, 'imported-images'),
    bootArchivesDir: join(stateDir, 'boot-archives'),
    applianceDir: join(stateDir, 'appliance'),
    importedAppliancesDir: join(stateDir, 'appliances'),
    applianceHooksFile: join(stateDir, 'appliance-hooks.json'),
    hostCopiesDir: join(stateDir, 'host-copies'),
    runDir,
    nodedSocket: join(runDir, 'noded.sock'),
    metadDir,
    metadControlSocket: join(metadDir, 'control.sock'),
    metadRecordFile: join(runDir, 'metad.json'),
    contentSocket: join(metadDir, 'content.sock'),
    vmDir: join(runDir, 'vm'),
    leaseFile: join(runDir, 'lease'),
    bootSourcesDir: join(runDir, 'boot'),
    networksDir: join(runDir, 'networks'),
    channelCommandsDir: join(runDir, 'channel'),
    childrenDir: join(runDir, 'children'),
    logDir: join(root, 'var/log/gnt'),
    netrcFile: join(root, 'etc/gnt/netrc'),
    hooksDir: join(root, 'etc/gnt/hooks'),
    runListsDir: join(root, 'etc/gnt/run-lists'),
    osSearchPath: GANETI_OS_PATHS.map((path) => join(root, path)),
    exportDir: join(root, 'srv/ganeti/export'),
    get networkNamespace() {
      return root === '/' ? 'gnt-com' : `gnt-com-${shortHash(root)}`;
    },
    get machineWallTable() {
      return `${this.networkNamespace}-machines`;
    },
  };
}

/** Loads OpenSSL lazily: it starts slowly, and commands use these paths without a hash. */
function shortHash(text: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}
