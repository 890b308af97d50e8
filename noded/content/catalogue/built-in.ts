import type { CatalogueEntry } from '#shared/contract/image-catalogue.ts';
import { GIB } from '#shared/units/bytes.ts';

const MACHINES = {
  amd64: { debian: 'amd64', rpm: 'x86_64' },
  arm64: { debian: 'arm64', rpm: 'aarch64' },
} as const;
export type Machine = keyof typeof MACHINES;

/**
 * Returns the distributions' own cloud images at their publishers. Checksums are requested when an
 * image is needed, since most images are replaced every few weeks. Debian does not sign these
 * lists. Fedora and AlmaLinux sign them inline, which is not verified. The version of cloud-init is
 * the oldest possible one where the publisher updates it.
 */
export function builtInImages(machine: Machine): CatalogueEntry[] {
  const { debian, rpm } = MACHINES[machine];
  return [
    ...[
      ['13', 'trixie', '25.1'],
      ['12', 'bookworm', '22.4'],
      ['11', 'bullseye', '20.4'],
    ].map(([version = '', codename = '', cloudInit = '']) =>
      entry({
        name: `debian/${version}`,
        aliases: [`debian/${codename}`],
        title: `Debian ${version} (${codename})`,
        user: 'debian',
        minDiskBytes: 3 * GIB,
        cloudInit,
        folder: `https://cloud.debian.org/images/cloud/${codename}/latest/`,
        file: `debian-${version}-genericcloud-${debian}.qcow2`,
        list: 'SHA512SUMS',
      }),
    ),
    ...[
      ['24.04', 'noble'],
      ['22.04', 'jammy'],
    ].map(([version = '', codename = '']) =>
      entry({
        name: `ubuntu/${version}`,
        aliases: [`ubuntu/${codename}`],
        title: `Ubuntu ${version} LTS (${codename})`,
        user: 'ubuntu',
        minDiskBytes: 4 * GIB,
        cloudInit: '25.1 or newer',
        folder: `https://cloud-images.ubuntu.com/releases/${codename}/release/`,
        file: `ubuntu-${version}-server-cloudimg-${debian}.img`,
        list: 'SHA256SUMS',
        signature: 'SHA256SUMS.gpg',
        // From Ubuntu's package ubuntu-cloudimage-keyring. Without it the signature is not
        // verified.
        keyring: '/usr/share/keyrings/ubuntu-cloudimage-keyring.gpg',
      }),
    ),
    entry({
      name: 'fedora/42',
      title: 'Fedora Cloud 42',
      user: 'fedora',
      minDiskBytes: 5 * GIB,
      cloudInit: '23.4 or newer',
      folder: `https://dl.fedoraproject.org/pub/fedora/linux/releases/42/Cloud/${rpm}/images/`,
      file: `Fedora-Cloud-Base-Generic-42-1.1.${rpm}.qcow2`,
      list: `Fedora-Cloud-42-1.1-${rpm}-CHECKSUM`,
    }),
    ...[
      ['10', '24.4 or newer'],
      ['9', '24.4 or newer'],
      ['8', '23.4'],
    ].map(([version = '', cloudInit = '']) =>
      entry({
        name: `almalinux/${version}`,
        title: `AlmaLinux ${version}`,
        user: 'almalinux',
        minDiskBytes: 10 * GIB,
        cloudInit,
        list: 'CHECKSUM',
        folder: `https://repo.almalinux.org/almalinux/${version}/cloud/${rpm}/images/`,
        file: `AlmaLinux-${version}-GenericCloud-latest.${rpm}.qcow2`,
      }),
    ),
  ];
}

interface Published
  extends
    Pick<CatalogueEntry, 'name' | 'title' | 'minDiskBytes' | 'user' | 'cloudInit'>,
    Partial<Pick<CatalogueEntry, 'aliases' | 'keyring'>> {
  readonly folder: string;
  readonly file: string;
  readonly list: string;
  readonly signature?: string;
}

function entry({ folder, file, list, signature, ...rest }: Published): CatalogueEntry {
  return {
    aliases: [],
    format: 'qcow2',
    checksum: null,
    keyring: null,
    ...rest,
    url: folder + file,
    checksums: folder + list,
    signature: signature === undefined ? null : folder + signature,
  };
}
