import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import xterm from '@xterm/headless';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { renderScreen } from './render-screen.ts';

/** Draws install.svg: a real terminal in the middle of a real installation. */
const projectDir = join(import.meta.dirname, '../..');
const COLUMNS = 80;
const ROWS = 24;
/** A link to the image with a readable name. */
const IMAGE = '/tmp/debian-12.qcow2';
/**
 * The shown and executed command. It uses TCG, because KVM would be past the middle of the image
 * too soon.
 */
const COMMAND = `gnt-instance add --os-image ${IMAGE} -s 2G -C yes \\
    -H kvm:accel=tcg web1.example.com`;
/** Matches the image stage. From MIN_PERCENT on, the ETA is stable. */
const STAGE = /^\S image .* (\d+) % .*ETA/;
const MIN_PERCENT = 45;
const MAX_PERCENT = 90;
const TIMEOUT_MS = 600_000;

function tell(text: string): void {
  process.stdout.write(`${text.trimEnd()}\n`);
}

/**
 * Runs the command in a pseudo terminal of script(1) from util-linux until the image stage is in
 * the middle.
 */
async function watchInstall(lab: Lab): Promise<string> {
  const screen = new xterm.Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true });
  screen.write(`\x1b[1;32m#\x1b[0m ${COMMAND.replaceAll('\n', '\r\n')}\r\n`);
  const shell = `stty cols ${COLUMNS} rows ${ROWS}; ${COMMAND}`;
  const child = spawn('script', ['-qefc', shell, '/dev/null'], {
    cwd: lab.paths.root,
    env: {
      PATH: `${join(projectDir, 'node_modules/.bin')}:${process.env['PATH']}`,
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      GNT_ROOT: lab.paths.root,
    },
    // Without a pipe, script(1) would get an end of file at once.
    stdio: ['pipe', 'pipe', 'ignore'],
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const ended = once(child, 'close').catch(() => undefined); // after a timeout or without script(1), the screen stays empty
  try {
    for await (const bytes of child.stdout as AsyncIterable<Buffer>) {
      await new Promise<void>((resolve) => screen.write(bytes, resolve));
      if (isInTheMiddle(screen)) return renderScreen(screen);
    }
    throw new Error(`the installation was not seen in the middle of its image:\n${read(screen)}`);
  } finally {
    child.kill('SIGTERM');
    await ended;
    screen.dispose();
  }
}

function isInTheMiddle(screen: xterm.Terminal): boolean {
  return read(screen)
    .split('\n')
    .some((row) => {
      const percent = Number(STAGE.exec(row)?.[1]);
      return percent >= MIN_PERCENT && percent <= MAX_PERCENT;
    });
}

function read(screen: xterm.Terminal): string {
  const { active } = screen.buffer;
  const rows = Array.from({ length: ROWS }, (_, row) => active.getLine(active.baseY + row));
  return rows.map((row) => row?.translateToString(true) ?? '').join('\n');
}

async function picture(lab: Lab): Promise<void> {
  const image = await buildGuestImage({ log: tell });
  await lab.run('gnt-appliance', ['build'], { isShown: true });
  await lab.startNode();
  await symlink(image.path, IMAGE);
  try {
    const path = join(projectDir, 'install.svg');
    await writeFile(path, await watchInstall(lab));
    tell(path);
  } finally {
    await rm(IMAGE);
  }
}

const lab = await createLab('gnt-picture');
const onSignal = (): void => void lab.dispose().finally(() => process.exit(130));
process.once('SIGINT', onSignal);
process.once('SIGTERM', onSignal);
try {
  await picture(lab);
} finally {
  await lab.dispose();
}
