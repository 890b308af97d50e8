import { relative } from 'node:path';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import { heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

type FileName = Exclude<
  keyof RootPaths,
  'root' | 'osSearchPath' | 'networkNamespace' | 'machineWallTable'
>;

/** Purpose of each path. A path without an entry does not compile. */
const FILES: Readonly<Record<FileName, string>> = {
  stateDir: 'State of the node. Back it up as a whole while gnt-noded is stopped.',
  storeFile: 'Store of a node that is a cluster by itself (SQLite).',
  storeChoiceFile: 'URL of the common store of the cluster.',
  clusterKeyFile: 'Key that seals the records in a common store. For root only.',
  nextClusterKeyFile: 'New cluster key while `gnt-cluster renew-crypto` runs.',
  formerClusterKeyFile: 'Former cluster key while `gnt-cluster renew-crypto` runs.',
  seenRecordsFile: 'Newest version of each record that this node has seen in a common store.',
  nodeKeyFile: 'Private key of this node. For root only.',
  bootFile: 'Boot of the host in which instances were last started.',
  disksDir: 'Disks of instances with the disk template `file`.',
  outcomesDir: 'Results of jobs that the store does not have yet.',
  imageCacheDir: 'Cache of downloaded images.',
  cataloguesFile: 'Image catalogues of this node.',
  importedImagesDir: 'Imported images.',
  bootArchivesDir: 'Extracted archives of boot environments.',
  applianceDir: 'The appliance that `gnt-appliance build` made.',
  importedAppliancesDir: 'Imported appliances, one folder each.',
  applianceHooksFile: 'Hook documents for every build of the appliance.',
  hostCopiesDir: 'Copies of OS definitions while their scripts run on the host.',
  runDir: 'Runtime state. It is lost at a reboot.',
  nodedSocket: 'Socket of the node API.',
  metadDir: 'Sockets between gnt-noded and gnt-metad.',
  metadControlSocket: 'Control socket of gnt-metad.',
  metadRecordFile: 'Process of gnt-metad.',
  contentSocket: 'Socket on which gnt-noded serves images and packages to gnt-metad.',
  vmDir: 'Sockets and records of QEMU processes.',
  leaseFile: 'End of the lease on shared disks.',
  bootSourcesDir: 'Kernels and initrds of running instances.',
  networksDir: 'Networks of this node, one folder each.',
  channelCommandsDir: 'Programs for scripts that run on the host, one folder each.',
  childrenDir: 'Processes that write for gnt-noded.',
  logDir: 'Logs of installations and the audit log of the channel.',
  netrcFile: 'Logins for image and package servers, in the format of netrc(5). For root only.',
  hooksDir: 'Hook documents of the cluster, `*.yaml`. See `gnt-hooks(5)`.',
  runListsDir: 'Run lists of the cluster, one folder each.',
  exportDir: 'Exports of instances, one folder each.',
};

export function filesPage(): DocumentedPage {
  const paths = createRootPaths('/');
  return documented('files.md', 'Files and folders', {
    name: 'gnt-files',
    section: 5,
    purpose: 'files and folders of gnt',
    blocks: [
      heading('Description'),
      paragraph('All paths are below `GNT_ROOT`, whose default is `/`.'),
      heading('Configuration'),
      paragraph('An administrator writes these files. All of them are optional.'),
      terms([
        ...entriesBelow(paths, 'etc'),
        ['/etc/gnt/rapi-users', 'Users of the remote API. See `gnt-rapi-users(5)`.'],
        ['/etc/gnt/rapi.pem', 'Key and certificate of the remote API.'],
        ['/etc/gnt/web.pem', 'Key and certificate of `--web`.'],
        ['/etc/gnt/identity.pem', 'Key and certificate of `--identity-listen`.'],
        ['/etc/default/gnt-noded', 'Options of gnt-noded under systemd.'],
        ['~/.config/gnt/config.yaml', 'Defaults of one user. See `gnt-config(5)`.'],
      ]),
      heading('Content'),
      terms([
        ...paths.osSearchPath.map(
          (path) => [path, 'OS definitions, one folder each. See `gnt-os-interface(7)`.'] as const,
        ),
        ...entriesBelow(paths, 'srv'),
      ]),
      heading('State'),
      terms(entriesBelow(paths, 'var')),
      heading('Runtime'),
      terms(entriesBelow(paths, 'run')),
      heading('Names in the kernel'),
      terms([
        [paths.networkNamespace, 'Network namespace of the channel. Other roots have a suffix.'],
        [paths.machineWallTable, 'nft table of the host for NICs with `mode=user`.'],
      ]),
    ],
    seeAlso: ['gnt(7)', 'gnt-noded(8)', 'gnt-config(5)', 'gnt-hooks(5)', 'gnt-rapi-users(5)'],
  });
}

function entriesBelow(
  paths: RootPaths,
  top: string,
): readonly (readonly [path: string, text: string])[] {
  return (
    Object.entries(FILES)
      // The keys of FILES.
      .map(([name, text]) => [paths[name as FileName], text] as const)
      .filter(([path]) => relative('/', path).split('/')[0] === top)
  );
}
