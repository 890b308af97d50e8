import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addDefinitions } from '../e2e/support/definitions.ts';
import { endLab } from '../e2e/support/end-lab.ts';
import { type ConsoleGuest, makeConsoleGuest } from '../e2e/support/console-shell.ts';
import { succeed } from '../e2e/support/ask-nodes.ts';
import { assertAccessible } from './support/axe.ts';
import { noBrowser, openInBrowser } from './support/browser.ts';
import { openWeb } from './support/web-lab.ts';

/** The page of one instance in Chromium, with real installations and a real guest. */
const GOOD = 'good.example.com';
const BAD = 'bad.example.com';
const GUEST = 'guest.example.com';
const SECTIONS = ['', 'installation', 'console', 'snapshots', 'parameters', 'metadata', 'audit'];
let lab: Lab;
let image: string;
let guest: ConsoleGuest;

before(async () => {
  lab = await createLab('gnt-one-page');
  // QEMU's user reads kernel and initramfs of the guest there.
  await chmod(lab.paths.root, 0o755);
  image = join(lab.paths.root, 'small.img');
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  await addDefinitions(lab, 'hello', 'failing');
  await lab.startNode();
  guest = await makeConsoleGuest(lab);
});

after(async () => {
  for (const name of [GOOD, BAD, GUEST])
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
  await endLab(lab);
});

/** Returns the text of the equivalent command. */
async function commandOf(page: Page): Promise<string> {
  return page.getByRole('group', { name: 'Equivalent command' }).locator('code').innerText();
}

async function runInShell(command: string): Promise<void> {
  const bin = join(import.meta.dirname, '../../node_modules/.bin');
  const env = { GNT_ROOT: lab.paths.root, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  await run('sh', ['-c', command], { env });
}

test(
  'an installation appears by itself, and its stages and result are shown',
  { skip: noBrowser },
  async (t) => {
    const { nextLink } = await openWeb(t, lab);
    const page = await openInBrowser(t, await nextLink());
    await page.getByText('There is no instance yet.').waitFor();
    const adding = lab.run('gnt-instance', [
      ...[
        'add',
        '--no-start',
        '--os-image',
        image,
        '-o',
        'hello',
        '-O',
        'greeting=hi',
        '-s',
        '32M',
        GOOD,
      ],
    ]);
    const row = page.getByRole('row', { name: GOOD });
    await row.getByText('installing').waitFor();
    await row.getByRole('link').click();
    await page.getByRole('link', { name: 'Installation' }).click();
    const stages = page.getByRole('list', { name: 'Stages' });
    await stages.getByText('boot-appliance').waitFor();
    await page.getByText('Last installation').waitFor();
    await stages.getByText('os-scripts').waitFor();
    await page.getByRole('definition').getByText('success').waitFor();
    assert.equal((await adding).status, 0);
    await page.getByText('stopped', { exact: true }).waitFor();
  },
);

test('a failed installation says its stage, error and remedy', { skip: noBrowser }, async (t) => {
  const { nextLink } = await openWeb(t, lab);
  const page = await openInBrowser(t, await nextLink());
  const adding = lab.run('gnt-instance', [
    ...['add', '--no-start', '--os-image', image, '-o', 'failing', '-s', '32M', BAD],
  ]);
  await page.getByRole('row', { name: BAD }).getByText('installation failed').waitFor();
  await page.getByRole('link', { name: BAD }).click();
  await page.getByRole('link', { name: 'Installation' }).click();
  await page
    .getByRole('alert')
    .getByText(/script/)
    .waitFor();
  assert.equal((await adding).status, 1);
  await assertAccessible(page);
});

test(
  'keys reach the guest, and its output changes nothing but the console',
  { skip: noBrowser },
  async (t) => {
    const boot = `kernel_path=${guest.kernel},initrd_path=${guest.initrd}`;
    const hvparams = `accel=tcg,kernel_args=console=ttyS0 quiet,${boot}`;
    await succeed(
    lab, 'gnt-instance', 'add', '--no-install', '-s', '8M', '--os-image', guest.image,
    '-B', 'memory=256M', '-H', hvparams, GUEST,
  ); // prettier-ignore
    await succeed(lab, 'gnt-instance', 'startup', GUEST);
    const { nextLink } = await openWeb(t, lab);
    const page = await openInBrowser(t, await nextLink());
    await page.goto(new URL(`/instances/${GUEST}/console`, page.url()).href);
    const screen = page.locator('.xterm-rows');
    const asking = setInterval(
      () => void page.keyboard.type('echo is-"up"\n').catch(() => undefined),
      1000,
    );
    try {
      await screen.getByText('is-up').first().waitFor();
    } finally {
      clearInterval(asking);
    }
    const title = await page.title();
    await page.keyboard.type(
      'printf \'\\033]0;hostile\\007\\033]52;c;aGFjaw==\\007<b id=x>mark</b>\'; echo do"ne"\n',
    );
    await screen.getByText('done').first().waitFor();
    assert.equal(await page.title(), title);
    assert.equal(await page.locator('#x').count(), 0);
    await screen.getByText('<b id=x>mark</b>').first().waitFor();
    await page.keyboard.press('Control+Alt+q');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Console');
  },
);

test(
  'each part is accessible, fits a phone, and its command runs',
  { skip: noBrowser },
  async (t) => {
    const { nextLink } = await openWeb(t, lab);
    const page = await openInBrowser(t, await nextLink(), { colorScheme: 'dark' });
    for (const section of SECTIONS) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(new URL(`/instances/${GOOD}/${section}`, page.url()).href);
      const command = section === 'metadata' ? 'true' : await commandOf(page);
      await assertAccessible(page);
      await page.setViewportSize({ width: 360, height: 740 });
      const width = await page.evaluate('document.documentElement.scrollWidth');
      assert.ok(Number(width) <= 360, `${section}: ${String(width)} pixels wide`);
      if (section !== 'console') await runInShell(command);
    }
  },
);
