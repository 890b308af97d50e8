import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { type CommandOptions, type CommandResult, tryCommand } from '../process/command.ts';
import { HeldNamespace, PERL, planConfineCommand } from '../process/held-namespace.ts';

/** Image and disk as the tools in there see them. */
export const JAILED_IMAGE = '/image';
export const JAILED_DISK = '/disk';
/** nobody */
const JAILED_UID = 65534;
/** As another user without capabilities and network. */
const WITHOUT_RIGHTS = [
  ...['/usr/bin/unshare', '--net', '/usr/bin/setpriv'],
  ...[`--reuid=${JAILED_UID}`, `--regid=${JAILED_UID}`, '--clear-groups'],
  ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'],
  ...['/usr/bin/env', '-i', 'PATH=/usr/bin', 'LC_ALL=C'],
];

/**
 * Where tools read images: a root directory with programs and libraries, read-only, and two more
 * names, the image and the disk that it is written to. Whatever else an image tells a tool to open is not there.
 */
export class ImageJail implements AsyncDisposable {
  readonly #namespace: HeldNamespace;

  private constructor(namespace: HeldNamespace) {
    this.#namespace = namespace;
  }

  /**
   * @param imagePath and the other: block devices, of which the jail gets nodes of its own; in
   * tests files that the tools' user may use
   * @param diskPath null where nothing is written
   */
  static async open(imagePath: string, diskPath: string | null): Promise<ImageJail> {
    const script = `mount -t tmpfs -o mode=755,size=256k jail /mnt
mkdir /mnt/usr /mnt/dev
mknod -m 666 /mnt/dev/null c 1 3
mkdir -m 1777 /mnt/tmp
mount --bind /usr /mnt/usr
mount -o remount,bind,ro /mnt/usr
for name in bin sbin lib lib64; do ln -s usr/$name /mnt/$name; done
give() {
  if [ -b "$1" ]; then
    cp -a "$1" "$2" && chown ${JAILED_UID}:${JAILED_UID} "$2" && chmod "$3" "$2"
  else
    : >"$2" && mount --bind "$1" "$2"
  fi
}
give ${quote(imagePath)} /mnt${JAILED_IMAGE} 400
${diskPath === null ? '' : `give ${quote(diskPath)} /mnt${JAILED_DISK} 600`}`;
    return new ImageJail(await HeldNamespace.open({ script, root: '/mnt' }));
  }

  async run(
    program: string,
    args: readonly string[],
    options?: CommandOptions,
  ): Promise<CommandResult> {
    return await tryCommand(PERL, this.#plan([program, ...args]), options);
  }

  /** Starts a program whose input and output are streams. */
  start(program: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn(PERL, this.#plan(program));
  }

  #plan(program: readonly string[]): readonly string[] {
    const jailed = [String(this.#namespace.holderPid), '', '/', '', '', ''];
    return planConfineCommand('run', ...jailed, ...WITHOUT_RIGHTS, ...program);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#namespace[Symbol.asyncDispose]();
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
