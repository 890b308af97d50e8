import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { unescapeOctal } from '../disks/fstab.ts';
import { runCommand } from '../process/command.ts';
import { HeldNamespace, type NamespaceDescription } from '../process/held-namespace.ts';
import type { Confinement } from './confine.ts';
import { Limits } from './limits.ts';

/** What scripts write into the appliance's system, in RAM. */
const OVERLAY = '/run/gnt/overlay';
/** Seen by the agent alone: it is mounted when the scripts' mount namespace is there already. */
const CONTROL_GROUPS = '/run/gnt/cgroup';
/** Scripts may not load modules; these they ask for by name, since there is no udev that would. */
const MODULES = ['overlay', 'loop', 'dm-mod', 'nbd'];
/**
 * CAP_SYS_MODULE and CAP_SYS_CHROOT, for modprobe: what else the kernel starts, a script may have
 * put there.
 */
const HELPER_CAPABILITIES = (1 << 16) | (1 << 18);

/**
 * The appliance's system as scripts see it: RAM over the read-only image, with its own /run and
 * /tmp. Of the agent's mounts nothing else is left in there, so that nothing that the agent reads
 * or starts can be exchanged.
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
 * The mount namespace that scripts and hooks of one installation share, and which the agent is not
 * in: what one of them mounts or leaves in its files, the next one sees, and the agent only when it
 * looks there.
 *
 * INVARIANTS: it is made once, when the first program needs it, since it costs time; it lasts as
 * long as its holder, which is a child of the agent.
 */
export class ScriptWorld {
  readonly #description: NamespaceDescription;
  readonly #prepare: () => Promise<void>;
  readonly #limit: () => Promise<Limits | null>;
  #opened: Promise<OpenWorld> | null = null;

  /**
   * @param options others than the appliance's are for tests, in which there is no kernel to be
   * locked down
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

  /** Null as long as nobody needed it, or when it could not be made. */
  async opened(): Promise<OpenWorld | null> {
    return (await this.#opened?.catch(() => null)) ?? null;
  }

  async #make(): Promise<OpenWorld> {
    await this.#prepare();
    const namespace = await HeldNamespace.open(this.#description);
    return new OpenWorld(namespace, await this.#limit());
  }
}

/** A world whose namespaces and mounts are there. */
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
   * Its root directory, for the agent: to be walked as `TargetRoot` does, since links in there are
   * the scripts'.
   */
  get rootPath(): string {
    return `/proc/${this.holderPid}/root`;
  }

  /**
   * Lets programs see a directory of the agent's, with what is mounted there and below, at the same
   * path.
   */
  async show(path: string): Promise<void> {
    await this.#namespace.attach(path, path);
  }

  /** Takes away what was shown, or what programs mounted. */
  async hide(paths: readonly string[]): Promise<void> {
    await this.#namespace.detach(paths);
  }

  /**
   * File systems of block devices that programs left mounted, or were shown, the innermost first.
   */
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

  /** Everything that is mounted in it goes with it. */
  async end(): Promise<void> {
    await this.#namespace[Symbol.asyncDispose]();
  }
}

/**
 * Closes the ways from root to the agent's memory that lead through the kernel, before the first
 * program of a user runs. Nothing opens them again before the power-off.
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
