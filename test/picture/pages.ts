import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { webLink } from '#shared/contract/api.ts';
import { run } from '#shared/process/run.ts';
import { readLines } from '#shared/text/lines.ts';
import { createNodeClient } from '../../cluster-cli/client/node-client.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { makeConsoleGuest } from '../e2e/support/console-shell.ts';
import { addDefinitions } from '../e2e/support/definitions.ts';

/** Draws docs/pictures/*.png: five places of the web page of a real node. */
const CHROMIUM = '/usr/bin/chromium';
const folder = join(import.meta.dirname, '../../docs/pictures');
const SIZE = { width: 1200, height: 720 };
const PLACES = [
  ['instances', '/instances'],
  ['installation', '/instances/web1.example.com/installation'],
  ['console', '/instances/db1.example.com/console'],
  ['launch', '/launch'],
  ['nodes', '/nodes'],
] as const;
/** Time for the last answers and fonts. */
const SETTLE_MS = 1500;

await mkdir(folder, { recursive: true });
const lab = await createLab('gnt-pages');
try {
  await prepare(lab);
  const browser = await chromium.launch({ executablePath: CHROMIUM });
  try {
    await draw(browser, await openLink(lab));
  } finally {
    await browser.close();
  }
} finally {
  await lab.dispose();
}

/** Makes an installed, a failed and a running instance. */
async function prepare({ paths, run: command, startNode }: Lab): Promise<void> {
  await chmod(paths.root, 0o755);
  const image = join(paths.root, 'debian-12.raw');
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  await addDefinitions(lab, 'hello', 'failing');
  await startNode();
  const { kernel, initrd, image: empty } = await makeConsoleGuest(lab);
  const add = (...args: readonly string[]) => command('gnt-instance', ['add', ...args]);
  await add('--no-start', '--os-image', image, '-o', 'hello', '-s', '32M', 'web1.example.com');
  await add('--no-start', '--os-image', image, '-o', 'failing', '-s', '32M', 'web2.example.com');
  const boot = `accel=tcg,kernel_args=console=ttyS0,kernel_path=${kernel},initrd_path=${initrd}`;
  const disk = ['--no-install', '-s', '8M', '--os-image', empty];
  await add(...disk, '-B', 'memory=256M', '-H', boot, 'db1.example.com');
  await command('gnt-instance', ['startup', 'db1.example.com']);
}

async function openLink({ paths }: Lab): Promise<string> {
  const client = createNodeClient({ socketPath: paths.nodedSocket, startCommand: 'gnt-noded' });
  const answer = await client.open('POST /v1/web', { body: { port: 0 } });
  answer.on('error', () => undefined);
  const { value = '' } = await readLines(answer, 1000).next();
  return webLink.parse(JSON.parse(value)).url;
}

async function draw(browser: Browser, link: string): Promise<void> {
  const page = await browser.newPage({ viewport: SIZE });
  await page.goto(link);
  for (const [name, path] of PLACES) {
    await page.goto(new URL(path, link).href);
    await page.locator('main h1').waitFor();
    await page.waitForTimeout(SETTLE_MS);
    if (name === 'console') {
      // The shell of this guest does not echo, for tests.
      await page.keyboard.type('stty echo onlcr; PS1="# "; clear\n');
      await page.waitForTimeout(SETTLE_MS);
      await page.keyboard.type('uname -sr; free; ls /\n');
      await page.waitForTimeout(SETTLE_MS);
    }
    await page.screenshot({ path: join(folder, `${name}.png`) });
    process.stdout.write(`docs/pictures/${name}.png\n`);
  }
}
