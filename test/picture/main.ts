import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import xterm from '@xterm/headless';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { renderScreen } from './render-screen.ts';

/** Draws install.svg: what a real terminal shows in the middle of a real installation. */
const projectDir = join(import.meta.dirname, '../..');
const COLUMNS = 80;
const ROWS = 24;
/** A link to the image under a name that reads well. */
const IMAGE = '/tmp/debian-12.qcow2';
/**
 * What is typed, and what runs. Emulated, since with KVM the middle of the image is over in a
 * blink.
 */
const COMMAND = `gnt-instance add --os-image ${IMAGE} -s 2G -C yes \\
    -H kvm:accel=tcg web1.example.com`;
/** The image stage, at least this far: an ETA has settled by then. */
const STAGE = /^\S image .* (\d+) % .*ETA/;
const MIN_PERCENT = 45;
const MAX_PERCENT = 90;
const TIMEOUT_MS = 600_000;

function tell(text: string): void {
  process.stdout.write(`${text.trimEnd()}\n`);
}

/**
 * Runs the command in a pseudo terminal of util-linux' script(1) until the screen shows what is
 * wanted.
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
    // A terminal that is not there sends an end of file at once.
    stdio: ['pipe', 'pipe', 'ignore'],
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const ended = once(child, 'close').catch(() => undefined); // out of time, or no script(1): the screen stays empty
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
