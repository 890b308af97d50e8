import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { FileSystem } from '../../../../../appliance/agent/disks/fstab.ts';

const MOUNT = join(import.meta.dirname, '../../../../../appliance/agent/disks/mount.ts');

export function fileSystem(path: string, more: Partial<FileSystem> = {}): FileSystem {
  return {
    ...{ path, type: 'ext4', aliases: [path], uuid: null, label: null },
    ...{ partUuid: null, partLabel: null, partType: null, diskIndex: 0, partition: 1 },
    ...more,
  };
}

/**
 * Mounts an instance of these file systems, which are files, in a mount namespace of its own, and
 * runs a shell script there.
 * @returns the summary, the log and the script's output, or the error's code, message and hint
 */
export function mountAndRun(disks: readonly FileSystem[], script = 'true'): string {
  const program = `
    import { execFileSync } from 'node:child_process';
    import { mountInstance } from ${JSON.stringify(MOUNT)};
    const lines = [];
    try {
      const said = await mountInstance(${JSON.stringify(disks)}, true, { log: (line) => lines.push(line), progress() {} });
      console.log(said, lines.join());
      console.log(execFileSync('sh', ['-euc', process.argv[1]], { encoding: 'utf8' }));
    } catch (error) { console.log(error.code, error.message, '\\nhint:', error.hint); }`;
  return execFileSync(
    'unshare',
    [
      ...['--mount', 'sh', '-euc', 'mount -t tmpfs none /run; exec "$@"', 'sh'],
      ...[process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module'],
      ...['-e', program, script],
    ],
    { encoding: 'utf8' },
  );
}
