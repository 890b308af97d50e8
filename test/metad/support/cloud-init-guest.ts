import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../../lab/cached-tree.ts';

const PACKAGES = [
  'ca-certificates',
  'cloud-init',
  'curl',
  'ifupdown',
  'iproute2',
  'isc-dhcp-client',
  'netbase',
];
const BOOT_TIMEOUT_MS = 180_000;

/**
 * A Debian root with the unmodified cloud-init, made once and kept in the build cache.
 * @returns its path; nothing may be written below it
 */
export function cloudInitTree(): Promise<string> {
  const left = ['man', 'doc', 'locale'].map((name) => `/usr/share/${name}/*`);
  return debianTree('cloud-init-guest', PACKAGES, left);
}

export interface Boot {
  /** cloud-init's datasource_list has this one only. */
  readonly datasource: 'Ec2' | 'OpenStack' | 'NoCloud';
  /** What dmidecode tells, by its keywords (`system-serial-number`). */
  readonly dmi: Readonly<Record<string, string>>;
  /** The guest has no link and no address. */
  readonly isChannelAway?: boolean;
}

/**
 * Machines that make cloud-init choose each of its datasources. AWS is the one with session tokens.
 */
export const NOCLOUD: Boot = {
  datasource: 'NoCloud',
  dmi: { 'system-serial-number': 'ds=nocloud;s=http://169.254.169.254/nocloud/;dsmode=net' },
};
/** Nothing points at the service: what the seed disk holds is all there is. */
export const SEED_ALONE: Boot = { datasource: 'NoCloud', dmi: {}, isChannelAway: true };
export const OPENSTACK: Boot = {
  datasource: 'OpenStack',
  dmi: { 'system-product-name': 'OpenStack Nova' },
};
export const BRIGHTBOX: Boot = {
  datasource: 'Ec2',
  dmi: { 'system-serial-number': 'srv-x.gnt.brightbox.com' },
};
export const AWS_UUID = 'ec2a1b2c-0000-4000-8000-000000000001';
export const AWS: Boot = {
  datasource: 'Ec2',
  dmi: { 'system-uuid': AWS_UUID, 'system-serial-number': AWS_UUID },
};

export interface BootResult {
  /** /var/lib/cloud/data/result.json: the datasource that was used, and errors. */
  readonly result: { readonly datasource: string; readonly errors: readonly string[] };
}

/**
 * The disk of one guest: an overlay on the tree. cloud-init runs on it in the guest's network
 * namespace and namespaces of its own for the rest, all stages as systemd would start them, without
 * a kernel, a boot loader or ds-identify.
 */
export class CloudInitGuest implements AsyncDisposable {
  readonly #directory: string;
  readonly #namespace: string;

  private constructor(directory: string, namespace: string) {
    this.#directory = directory;
    this.#namespace = namespace;
  }

  static async create(namespace: string): Promise<CloudInitGuest> {
    const tree = await cloudInitTree();
    const directory = await mkdtemp(join(tmpdir(), 'gnt-guest-'));
    // An overlay's upper layer cannot lie on an overlay, which a container's /tmp may be.
    await run('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', directory]);
    for (const name of ['upper', 'work', 'root']) await mkdir(join(directory, name));
    const layers = ['upper', 'work'].map((name) => `${name}dir=${join(directory, name)}`);
    const options = [`lowerdir=${tree}`, ...layers].join(',');
    await run('mount', ['-t', 'overlay', '-o', options, 'overlay', join(directory, 'root')]);
    return new CloudInitGuest(directory, namespace);
  }

  /** Runs all stages of cloud-init, as one boot does. */
  async boot(boot: Boot): Promise<BootResult> {
    const root = join(this.#directory, 'root');
    await writeProgram(join(root, 'usr/sbin/dmidecode'), dmidecodeScript(boot.dmi));
    await writeProgram(join(root, 'usr/bin/systemd-detect-virt'), '#!/bin/sh\necho none\nexit 1\n');
    await writeProgram(join(root, 'boot.sh'), bootScript(boot));
    await run('ip', ['-n', this.#namespace, 'addr', 'flush', 'dev', 'eth0', 'scope', 'global']);
    await run(
      'ip',
      [
        ...['netns', 'exec', this.#namespace],
        ...['unshare', '--mount', '--pid', '--uts', '--ipc', '--fork', '--kill-child'],
        ...['chroot', root, '/bin/sh', '/boot.sh'],
      ],
      { timeoutMs: BOOT_TIMEOUT_MS },
    );
    const file = join(root, 'var/lib/cloud/data/result.json');
    const { v1 } = JSON.parse(await readFile(file, 'utf8')) as { v1: BootResult['result'] };
    return { result: v1 };
  }

  /**
   * Lays the files of a seed disk where cloud-init looks for them beside such disks: it reads them
   * by the same function, and no device has to be made.
   */
  async placeSeed(image: string): Promise<void> {
    const directory = join(this.#directory, 'root/var/lib/cloud/seed/nocloud');
    await mkdir(directory, { recursive: true });
    await run('mcopy', ['-n', '-i', image, '::*', directory]);
  }

  /** A file of the guest's disk; null when there is none. */
  async file(path: string): Promise<string | null> {
    return await readFile(join(this.#directory, 'root', path), 'utf8').catch(() => null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('umount', [join(this.#directory, 'root')]);
    await run('umount', [this.#directory]);
    await rm(this.#directory, { recursive: true });
  }
}

async function writeProgram(path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, text, { mode: 0o755 });
}

function dmidecodeScript(dmi: Readonly<Record<string, string>>): string {
  const cases = Object.entries(dmi).map(([key, value]) => `${key}) echo '${value}' ;;`);
  return `#!/bin/sh\nfor last; do :; done\ncase $last in\n${cases.join('\n')}\n*) echo '' ;;\nesac\n`;
}

function bootScript({ datasource, isChannelAway = false }: Boot): string {
  const network = `ip link set eth0 up
dhclient -4 -1 -pf /run/dhclient.pid -lf /run/dhclient.leases eth0`;
  // The guest tells the host how its boot ended; the brackets keep grep from finding itself.
  const untilTold = `while grep -qs -e '[g]nt-tell-result' -e '[b]oot/status' /proc/[0-9]*/cmdline; do sleep 0.1; done`;
  return `set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/cloud-init /run/network
printf 'datasource_list: [ ${datasource}, None ]\\n' >/run/cloud-init/cloud.cfg
set +e
cloud-init init --local
${isChannelAway ? 'ip link set eth0 down' : network}
cloud-init init
cloud-init modules --mode=config
cloud-init modules --mode=final
${isChannelAway ? '' : untilTold}
cp /run/cloud-init/instance-data-sensitive.json /var/instance-data.json
[ ! -e /run/dhclient.pid ] || kill "$(cat /run/dhclient.pid)"
exit 0
`;
}
