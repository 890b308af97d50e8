import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { unescapeOctal } from '../disks/fstab.ts';
import { runCommand } from '../process/command.ts';
import { HeldNamespace, type NamespaceDescription } from '../process/held-namespace.ts';
import type { Confinement } from './confine.ts';
import { Limits } from './limits.ts';

/** Changes of scripts to the appliance's system, in RAM. */
const OVERLAY = '/run/gnt/overlay';
/** Visible to the agent only: mounted after the scripts' mount namespace is made. */
const CONTROL_GROUPS = '/run/gnt/cgroup';
/** Loaded for scripts, which cannot load modules; there is no udev that would. */
const MODULES = ['overlay', 'loop', 'dm-mod', 'nbd'];
/**
 * CAP_SYS_MODULE and CAP_SYS_CHROOT, for modprobe. A script may have replaced any other helper that
 * the kernel starts.
 */
const HELPER_CAPABILITIES = (1 << 16) | (1 << 18);

/**
 * The appliance's system as scripts see it: RAM over the read-only image, with its own /run and
 * /tmp. The agent's other mounts are absent, so that scripts cannot exchange files that the agent
 * reads or starts.
 */
const APPLIANCE_WORLD: NamespaceDescription = {
  script: `mount -t overlay -o lowerdir=/,upperdir=${OVERLAY}/upper,workdir=${OVERLAY}/work overlay /mnt
mount --rbind /dev /mnt/dev
mount --rbind /sys /mnt/sys
mount -t tmpfs -o mode=755 run /mnt/run
mount -t tmpfs -o mode=1777 tmp /mnt/tmp
mount -t tmpfs -o mode=555,size=4k proc /mnt/proc
umount -l /tmp /run
umount -l /proc`,
  root: '/mnt',
};

/**
 * The mount namespace that scripts and hooks of one installation share, without the agent. Their
 * mounts and files are visible to later scripts, and to the agent only on request.
 * - INVARIANTS: it is made once, at the first program, since it costs time; it lasts as long as its
 *   holder, a child of the agent.
 */
export class ScriptWorld {
  readonly #description: NamespaceDescription;
  readonly #prepare: () => Promise<void>;
  readonly #limit: () => Promise<Limits | null>;
  #opened: Promise<OpenWorld> | null = null;

  /**
   * @param options other values than the appliance's are for tests, which must not lock down the
   * kernel
   */
  constructor(
    options: {
      readonly description: NamespaceDescription;
      readonly prepare: () => Promise<void>;
      readonly limit: () => Promise<Limits | null>;
    } = {
      description: APPLIANCE_WORLD,
      prepare: prepareAppliance,
      limit: () => Limits.create(CONTROL_GROUPS),
    },
  ) {
    this.#description = options.description;
    this.#prepare = options.prepare;
    this.#limit = options.limit;
  }

  /** @throws AppError COMMAND_FAILED */
  async open(): Promise<OpenWorld> {
    this.#opened ??= this.#make();
    return await this.#opened;
  }

  /** Returns null before the first use, or when it could not be made. */
  async opened(): Promise<OpenWorld | null> {
    return (await this.#opened?.catch(() => null)) ?? null;
  }

  async #make(): Promise<OpenWorld> {
    await this.#prepare();
    const namespace = await HeldNamespace.open(this.#description);
    return new OpenWorld(namespace, await this.#limit());
  }
}

export class OpenWorld implements Confinement {
  readonly #namespace: HeldNamespace;
  readonly limits: Limits | null;

  constructor(namespace: HeldNamespace, limits: Limits | null) {
    this.#namespace = namespace;
    this.limits = limits;
  }

  get holderPid(): number {
    return this.#namespace.holderPid;
  }

  /**
   * Its root directory for the agent. It must be walked by `TargetRoot`, since scripts control its
   * links.
   */
  get rootPath(): string {
    return `/proc/${this.holderPid}/root`;
  }

  /** Shows a directory of the agent, and the mounts below it, to programs at the same path. */
  async show(path: string): Promise<void> {
    await this.#namespace.attach(path, path);
  }

  /** Removes shown directories and programs' mounts. */
  async hide(paths: readonly string[]): Promise<void> {
    await this.#namespace.detach(paths);
  }

  /** Lists mounts of block devices that programs made or were shown, the innermost first. */
  listMounts(): readonly { readonly device: string; readonly where: string }[] {
    return readFileSync(`/proc/${this.holderPid}/mounts`, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('/dev/'))
      .map((line) => {
        const [device = '', where = ''] = line.split(' ');
        return { device, where: unescapeOctal(where) };
      })
      .reverse();
  }

  async end(): Promise<void> {
    await this.#namespace[Symbol.asyncDispose]();
  }
}

/**
 * Closes root's ways through the kernel to the agent's memory, before the first untrusted program
 * runs. They stay closed until power-off.
 */
async function prepareAppliance(): Promise<void> {
  for (const name of ['upper', 'work']) mkdirSync(`${OVERLAY}/${name}`, { recursive: true });
  await runCommand('modprobe', ['-a', ...MODULES]);
  const security = '/sys/kernel/security';
  await runCommand('mount', ['-t', 'securityfs', 'securityfs', security]);
  writeFileSync(`${security}/lockdown`, 'confidentiality');
  await runCommand('umount', [security]);
  const helpers = '/proc/sys/kernel/usermodehelper';
  writeFileSync(`${helpers}/inheritable`, '0 0');
  writeFileSync(`${helpers}/bset`, `${HELPER_CAPABILITIES} 0`);
}
