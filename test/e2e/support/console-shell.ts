import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { makeTinyLinux, type TinyLinux } from '../../lab/tiny-linux.ts';
import { infoOf, succeed } from './ask-nodes.ts';

const LIMIT_MS = 120_000;
const INIT = `#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /etc /tmp /usr/bin
$b --install -s /usr/bin
export PATH=/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci virtio_net
ip link set lo up
ip link set eth0 up
export PS1= PS2=
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo -onlcr
cat >/tmp/dhcp <<'end'
#!/bin/busybox sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip address flush dev $interface
ip address add $ip/$mask dev $interface
ip route replace default via $router
echo "nameserver $dns" >/etc/resolv.conf
echo "lease $ip/$mask $router $dns"
end
chmod 755 /tmp/dhcp
while :; do setsid cttyhack sh; done
`;

/** A kernel with busybox: a guest that runs commands from its console. */
export interface ConsoleGuest extends TinyLinux {
  /** An image that the guest does not read. */
  readonly image: string;
}

/** Makes the guest from the appliance's kernel, in the lab's root. */
export async function makeConsoleGuest(lab: Lab): Promise<ConsoleGuest> {
  await succeed(lab, 'gnt-appliance', 'build');
  const tiny = await makeTinyLinux(lab, 'console-guest.img', INIT);
  const image = join(lab.paths.root, 'image.raw');
  await writeFile(image, Buffer.alloc(65_536), { mode: 0o644 });
  return { ...tiny, image };
}

/** The shell of such a guest, on its serial console. */
export class ConsoleShell implements Disposable {
  readonly #name: string;
  readonly #socket: Socket;
  #unread = '';
  #commands = 0;

  private constructor(name: string, socket: Socket) {
    this.#name = name;
    this.#socket = socket;
    socket.setEncoding('utf8').on('data', (text: string) => (this.#unread += text));
  }

  /** Waits until its guest has booted. */
  static async open(lab: Lab, name: string): Promise<ConsoleShell> {
    const socket = connect(join(lab.paths.vmDir, (await infoOf(lab, name)).uuid, 'console'));
    await once(socket, 'connect');
    const shell = new ConsoleShell(name, socket);
    // Input before the start of the shell is lost.
    const asking = setInterval(() => socket.write('echo is-"up"\n'), 1000);
    try {
      await shell.#readTo(/is-up\n/);
    } finally {
      clearInterval(asking);
    }
    await shell.run('true');
    return shell;
  }

  /** @returns its output; null when it failed */
  async run(command: string): Promise<string | null> {
    this.#commands += 1;
    const mark = `end-${this.#commands}`;
    // Commands do not use the console, because some leave the terminal non-blocking.
    this.#socket.write(
      `(${command}) </dev/null >/tmp/out 2>&1; echo "$?" >/tmp/status; cat /tmp/out; echo "en""${mark.slice(2)}-$(cat /tmp/status)"\n`,
    );
    const match = await this.#readTo(new RegExp(`${mark}-(\\d+)\\n`));
    return match.status === '0' ? match.before : null;
  }

  async #readTo(pattern: RegExp): Promise<{ readonly before: string; readonly status: string }> {
    const signal = AbortSignal.timeout(LIMIT_MS);
    for (;;) {
      const match = pattern.exec(this.#unread);
      if (match !== null) {
        const before = this.#unread.slice(0, match.index);
        this.#unread = this.#unread.slice(match.index + match[0].length);
        return { before, status: match[1] ?? '' };
      }
      await once(this.#socket, 'data', { signal }).catch((cause: unknown) => {
        throw new Error(`${this.#name} says no ${pattern}, but: ${this.#unread}`, { cause });
      });
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
