import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { userModeLinux } from './unpacked-packages.ts';

/** Only reached by a hang. */
const TIMEOUT_MS = 30 * 60_000;
const MODULES = [
  ...['md/dm-mod', 'md/dm-bufio', 'md/dm-bio-prison', 'md/persistent-data/dm-persistent-data'],
  ...['md/dm-snapshot', 'md/dm-thin-pool'],
];
/**
 * Without udev the device mapper creates its names itself. Monitoring is off, because each command
 * would wait for a daemon that does not run. The fill level of a pool is available without it.
 */
const LVM_CONF = `devices { filter=["a|^/dev/ubd.$|","r|.*|"] scan_lvs=0 use_devicesfile=0 }
devices { hints="none" }
activation { udev_sync=0 udev_rules=0 monitoring=0 }
backup { backup=0 archive=0 }
`;

/**
 * User Mode Linux 6.1 sets the registers of a process from a buffer of 2,696 bytes. The host's
 * kernel refuses it where they need more, as on processors with AMX (11,008 bytes).
 */
const REGISTERS_TOO_LARGE = 'ptrace set fp regs failed';

/**
 * Runs a file of this checkout in User Mode Linux, whose kernel has a device mapper that the host's
 * kernel may lack. It has the host's files and separate devices.
 * @param diskBytes of an empty disk, /dev/ubda
 * @returns null on a host whose processor User Mode Linux does not support
 */
export async function runInOwnKernel(
  file: string,
  { diskBytes }: { readonly diskBytes: number },
): Promise<{ readonly status: number; readonly output: string } | null> {
  const seed = process.env['GNT_TEST_SEED'];
  const { kernel, modules } = await userModeLinux();
  const folder = await mkdtemp(join(tmpdir(), 'gnt-kernel-'));
  try {
    const [disk, script, output, status] = ['disk', 'init', 'output', 'status'].map((name) =>
      join(folder, name),
    ) as [string, string, string, string];
    {
      await using made = await open(disk, 'w', 0o600);
      await made.truncate(diskBytes);
    }
    await writeFile(join(folder, 'lvm.conf'), LVM_CONF);
    await writeFile(
      script,
      `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${seed === undefined ? '' : `GNT_TEST_SEED=${seed}`}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount --bind ${folder}/lvm.conf /etc/lvm/lvm.conf
for module in ${MODULES.join(' ')}; do busybox insmod ${modules}/$module.ko; done
cd ${process.cwd()}
'${process.execPath}' --test-reporter=tap '${file}' >${output} 2>&1
echo $? >${status}
busybox poweroff -f
`,
      { mode: 0o755 },
    );
    const files = ['root=/dev/root', 'rootfstype=hostfs', 'rootflags=/', 'rw', `ubd0=${disk}`];
    const quiet = ['quiet', 'con=null', 'con0=null,fd:1', `uml_dir=${folder}`];
    const words = ['mem=1536M', ...files, `init=${script}`, ...quiet];
    const { stdout } = await run(kernel, words, { timeoutMs: TIMEOUT_MS }).catch(
      (error: unknown) => {
        if (messageOf(Error.isError(error) && error.cause).includes(REGISTERS_TOO_LARGE))
          return { stdout: null };
        throw error;
      },
    );
    if (stdout === null) return null;
    const said = await readFile(output, 'utf8').catch(() => stdout);
    return { status: Number(await readFile(status, 'utf8').catch(() => '1')), output: said };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
