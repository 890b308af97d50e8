import type { Command } from 'commander';
import type { z } from 'zod';
import { DEFAULT_LOW_SPACE_PERCENT } from '#shared/contract/cluster-settings.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { DEFAULT_INSTALL_TIMEOUT_S } from '#shared/contract/install-timeout.ts';
import type { clusterModify } from '#shared/contract/opcode.ts';
import { GIB } from '#shared/units/bytes.ts';
import { heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

interface Setting {
  /** Options that set it; empty when another program sets it. */
  readonly options: readonly string[];
  readonly default: string;
  readonly text: string;
}

const limits = downloadLimitsOf({});

/** A setting without a row does not compile. */
const SETTINGS: Readonly<
  Record<Exclude<keyof z.input<typeof clusterModify>, 'opcode'>, Setting | readonly Setting[]>
> = {
  installTimeoutS: {
    options: ['--install-timeout'],
    default: `${DEFAULT_INSTALL_TIMEOUT_S} seconds`,
    text: 'Time limit of an installation, an export or another script. 0 removes the limit.',
  },
  hostScripts: {
    options: ['--host-scripts'],
    default: 'yes',
    text: 'Whether scripts of trusted OS definitions may run on the host.',
  },
  appliance: {
    options: [],
    default: 'the built appliance',
    text: 'Appliance of installations. `gnt-appliance use NAME` sets it.',
  },
  defaultOs: {
    options: ['--default-os'],
    default: 'none',
    text: 'OS definition of new instances that name no OS, image or medium.',
  },
  launchDefaults: {
    options: [
      '--default-size',
      '--default-memory',
      '--default-vcpus',
      '--default-net',
      '--default-network',
    ],
    default: '`10G`, `512M`, `1`, `mode=user`, none',
    text: 'Defaults of `gnt-instance launch`.',
  },
  maxImageBytes: {
    options: ['--max-image-size'],
    default: `${limits.maxImageBytes / GIB} GiB`,
    text: 'Maximum size of an image as it is published.',
  },
  downloadTimeoutS: {
    options: ['--download-timeout'],
    default: `${limits.timeoutS} seconds`,
    text: 'Time limit of a download. 0 removes the limit.',
  },
  minDownloadRate: {
    options: ['--min-download-rate'],
    default: `${limits.minRate} bytes per second`,
    text: 'Minimum rate of a download. A slower server is given up. 0 removes the limit.',
  },
  imageCa: {
    options: ['--image-ca'],
    default: 'the authorities of the host',
    text: 'Additional certificate authorities for HTTPS servers of images, catalogues and packages.',
  },
  remoteFolders: {
    options: ['--remote-folders'],
    default: 'none',
    text: 'Folders below which users of the remote API may name files of a node.',
  },
  remoteHosts: {
    options: ['--remote-hosts'],
    default: 'none',
    text: 'Non-public hosts and networks that URLs of the remote API may lead to.',
  },
  confineGuests: {
    options: ['--confine-guests'],
    default: 'no',
    text: 'Every NIC of mode=user and every NAT network reaches public addresses and guest networks only.',
  },
  guestNetworks: {
    options: ['--guest-networks'],
    default: 'none',
    text: 'Private networks that NICs with `reach=public` reach.',
  },
  sharedFileStorageDir: {
    options: ['--shared-file-storage-dir'],
    default: 'none',
    text: 'Folder that all nodes share, for the disk template `sharedfile`.',
  },
  vgName: {
    options: ['--vg-name'],
    default: 'none',
    text: 'LVM volume group or thin pool for new disks of the template `plain`.',
  },
  zfsPool: {
    options: ['--zfs-pool'],
    default: 'none',
    text: 'ZFS pool or dataset for new disks of the template `zfs`.',
  },
  lowSpacePercent: {
    options: ['--low-space'],
    default: `${DEFAULT_LOW_SPACE_PERCENT} percent`,
    text: 'Free space below which jobs and `gnt-node doctor` warn. 0 disables the warning of jobs.',
  },
  dataRate: {
    options: ['--data-rate'],
    default: 'no limit',
    text: 'Bytes per second that each move or migration sends at most.',
  },
  exposeServices: {
    options: ['--expose-service'],
    default: 'none',
    text: 'Services of the host or its network that guests reach on a port of 169.254.169.254.',
  },
  imageKeys: {
    options: ['--image-key'],
    default: 'none',
    text: 'Public keys of minisign or OpenPGP. With a key, images and packages must be signed.',
  },
  packageMirrors: {
    options: ['--package-mirror'],
    default: 'none',
    text: 'Package mirrors that installations read through the metadata service.',
  },
  relays: {
    options: ['--relay'],
    default: 'none',
    text: 'Servers that guests reach through the metadata service, with a secret of the nodes.',
  },
  identity: [
    {
      options: ['--identity'],
      default: '`no`',
      text: 'Instances that get identity tokens and signed EC2 identity documents.',
    },
    {
      options: ['--identity-trust-domain'],
      default: 'the name of the cluster',
      text: 'SPIFFE trust domain of the identity tokens.',
    },
    {
      options: ['--identity-issuer'],
      default: '`https://TRUST-DOMAIN`',
      text: 'Issuer of the identity tokens: the URL below which verifiers read the identity keys.',
    },
    {
      options: ['--identity-audiences'],
      default: 'all',
      text: 'Audiences for which instances may get identity tokens.',
    },
    {
      options: ['--identity-aws'],
      default: 'none',
      text: 'Credentials of AWS, or of a compatible service, in exchange for tokens: `sts=URL,role=ARN,role:PROFILE=ARN,audience=AUDIENCE,region=REGION`.',
    },
    {
      options: ['--identity-google'],
      default: 'none',
      text: 'Access tokens of Google Cloud in exchange for tokens: `provider=NAME,account=EMAIL,account:PROFILE=EMAIL,sts=URL,iam=URL`.',
    },
    {
      options: ['--identity-revoke'],
      default: 'none',
      text: 'Instances that get no identity tokens, by UUID.',
    },
  ],
  addTags: { options: [], default: 'none', text: 'Tags. The remote API adds them.' },
  removeTags: { options: [], default: 'none', text: 'Tags. The remote API removes them.' },
};

/** @throws Error for an option that gnt-cluster modify does not have */
export function clusterSettingsPage(programs: readonly Command[]): DocumentedPage {
  const known = optionsOfModify(programs);
  return documented('cluster-settings.md', 'Cluster settings', {
    name: 'gnt-cluster-settings',
    section: 7,
    purpose: 'settings of the cluster and their defaults',
    blocks: [
      heading('Description'),
      paragraph(
        '`gnt-cluster modify` sets these values for all nodes. `gnt-cluster info` shows them.',
      ),
      heading('Settings'),
      terms(
        Object.entries(SETTINGS).flatMap(([name, rows]) =>
          [rows].flat().map(({ options, default: preset, text }) => {
            const unknown = options.find((option) => !known.has(option));
            if (unknown !== undefined)
              throw new Error(`gnt-cluster modify has no option ${unknown}`);
            return [
              options.length === 0 ? name : options.join(', '),
              `${text} Default: ${preset}.`,
            ] as const;
          }),
        ),
      ),
    ],
    seeAlso: ['gnt-cluster-modify(8)', 'gnt-cluster-info(8)'],
  });
}

function optionsOfModify(programs: readonly Command[]): ReadonlySet<string> {
  const cluster = programs.find((program) => program.name() === 'gnt-cluster');
  const modify = cluster?.commands.find((command) => command.name() === 'modify');
  return new Set(modify?.options.flatMap(({ long }) => long ?? []));
}
