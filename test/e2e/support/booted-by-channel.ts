import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab, ProgramName } from '../../../scripts/demo/lab.ts';

/** The example with Debian's own installer. */
const EXAMPLE = join(import.meta.dirname, '../../../fixtures/bootenvs/debian-12');
/** Reports the firmware and returns to it. */
const SCRIPT = '#!ipxe\nimgfetch {{.Machine.Url}}/seen-${platform} ||\nexit\n';
const TELLS = {
  Name: 'tells',
  OS: { Name: 'debian-12' },
  Templates: [{ Name: 'ipxe', Contents: SCRIPT, Path: '{{.Machine.MacAddr "ipxe"}}.ipxe' }],
};
/** Emulated firmware takes seconds, EFI much longer, on a busy host. */
const DEADLINE_MS = 300_000;
/** Interval of polls: a new line in a file has no event. */
const POLL_MS = 200;

/**
 * Options of an instance that rehearses: the installer's answers report its arrival and install
 * nothing.
 */
export const REHEARSAL = [
  ...['-B', 'memory=1024', '-C', 'yes', '--no-start', '--install-timeout', '1500'],
  ...['--bootenv', 'debian-12-install', '-O', 'debian-preseed=debian-12-rehearsal.tmpl'],
];

export async function must(lab: Lab, program: ProgramName, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run(program, args, { timeoutMs: 1_800_000 });
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/**
 * Creates the installer's BootEnv, and `tells`, which loads nothing.
 * @param more files of content
 */
export async function createBootEnvs(lab: Lab, ...more: readonly string[]): Promise<void> {
  const folder = join(lab.paths.root, 'content/bootenvs');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tells.json'), JSON.stringify(TELLS));
  await must(lab, 'gnt-bootenv', 'create', EXAMPLE, join(lab.paths.root, 'content'), ...more);
}

/** Resolves when the script of `tells` has run with this kind of firmware. */
export async function sawFirmware(
  lab: Lab,
  uuid: string,
  platform: 'efi' | 'pcbios',
): Promise<void> {
  const path = join(lab.paths.root, 'var/log/gnt/metad.log');
  const wanted = `machines/${uuid}/seen-${platform}`;
  await until(`the log never had ${wanted}`, async () =>
    (await readFile(path, 'utf8')).includes(wanted),
  );
}

export async function until(failure: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(failure);
    await sleep(POLL_MS);
  }
}
