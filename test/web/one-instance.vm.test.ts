import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addDefinitions } from '../e2e/support/definitions.ts';
import { endLab } from '../e2e/support/end-lab.ts';
import { type ConsoleGuest, ConsoleShell, makeConsoleGuest } from '../e2e/support/console-shell.ts';
import { succeed } from '../e2e/support/ask-nodes.ts';
import { assertAccessible } from './support/axe.ts';
import { assertWellShown } from './support/sizes.ts';
import { findMarkup, MARKUP } from './support/spoil-answers.ts';
import { noBrowser, openInBrowser } from './support/browser.ts';
import { openWeb } from './support/web-lab.ts';

/** The page of one instance in Chromium, with real installations and a real guest. */
const GOOD = 'good.example.com';
const BAD = 'bad.example.com';
const GUEST = 'guest.example.com';
const METADATA = 'http://169.254.169.254';
/** A title, the clipboard, a link, colours of the page, a report of the title, and markup. */
const ESCAPES = [
  ...[
    '\\033]0;hostile\\007',
    '\\033]52;c;aGFjaw==\\007',
    '\\033]8;;javascript:x()\\007a\\033]8;;\\007',
  ],
  ...['\\033]11;red\\007', '\\033[21t', '<b id=x>mark</b>'],
];
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
    '--communication', 'yes', '-B', 'memory=256M', '-H', hvparams, GUEST,
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
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.evaluate("navigator.clipboard.writeText('mine')");
    for (const line of ESCAPES) await page.keyboard.type(`printf '${line}'\n`);
    await page.keyboard.type('echo do"ne"\n');
    await screen.getByText('done').first().waitFor();
    assert.equal(await page.title(), title);
    assert.equal(await page.locator('#x, .terminal a').count(), 0);
    await screen.getByText('<b id=x>mark</b>').first().waitFor();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'mine');
    await assertWellShown(page);
    await page.locator('.xterm-screen').click();
    await page.keyboard.press('Control+Alt+q');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Console');
  },
);

test(
  'what the guest reports stays text, and its metadata is what the guest reads',
  { skip: noBrowser },
  async (t) => {
    using shell = await ConsoleShell.open(lab, GUEST);
    const ask = (...words: readonly string[]) => shell.run(`wget -q -O - ${words.join(' ')}`);
    await shell.run('udhcpc -i eth0 -n -q -f -t 20 -T 1 -s /tmp/dhcp');
    const report = JSON.stringify({
      ...{ event_type: 'finish', name: `init-network/${MARKUP}`, result: 'FAIL' },
      description: `${MARKUP}\u202etxt\u001b]0;hostile\u0007`,
    });
    await ask(`--post-data '${report}'`, `${METADATA}/ganeti/latest/boot/events`);
    const read = await ask(`${METADATA}/openstack/latest/network_data.json`);
    assert.match(read ?? '', /"links"/);
    const { nextLink } = await openWeb(t, lab);
    const page = await openInBrowser(t, await nextLink());
    const shows = async (part: string, text: string | RegExp): Promise<void> => {
      await page.goto(new URL(`/instances/${GUEST}/${part}`, page.url()).href);
      await page.locator('main').getByText(text).first().waitFor();
      assert.deepEqual(await findMarkup(page), [], part);
      const all = await page.locator('#app').innerText();
      assert.equal(all.includes('\u001b') || all.includes('\u202e'), false, part);
    };
    await shows('', MARKUP);
    await shows('metadata', 'openstack/');
    for (const entry of ['openstack/', 'latest', 'network_data.json'])
      await page.getByRole('button', { name: entry, exact: true }).last().click();
    const content = page.getByLabel('Content of /openstack/latest/network_data.json');
    assert.equal((await content.innerText()).trim(), read?.trim());
    assert.match(await commandOf(page), /gnt-instance metadata .*network_data\.json$/);
  },
);

test('a snapshot is taken, restored and removed', { skip: noBrowser }, async (t) => {
  const { nextLink } = await openWeb(t, lab);
  const page = await openInBrowser(t, await nextLink());
  await page.goto(new URL(`/instances/${GOOD}/snapshots`, page.url()).href);
  await page.getByLabel('Name of the new snapshot').fill('before');
  await page.getByLabel(/Copy the disks/).check();
  assert.equal(await commandOf(page), `gnt-instance snapshot --copy ${GOOD} before`);
  await page.getByRole('button', { name: 'Take a snapshot' }).click();
  const row = page.getByRole('row', { name: 'before' });
  await row.waitFor();
  for (const [verb, command] of [
    ['Restore', 'restore-snapshot'],
    ['Remove', 'remove-snapshot'],
  ] as const) {
    await row.getByRole('button', { name: verb }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(`gnt-instance ${command} ${GOOD} before`).waitFor();
    await dialog.getByRole('button', { name: verb, exact: true }).click();
    await page
      .locator('.notice', { hasText: /: success/ })
      .getByText(command)
      .waitFor();
  }
  await row.waitFor({ state: 'detached' });
});

test('each part is well shown, and its command runs', { skip: noBrowser }, async (t) => {
  const { nextLink } = await openWeb(t, lab);
  const page = await openInBrowser(t, await nextLink());
  for (const section of SECTIONS) {
    await page.goto(new URL(`/instances/${GOOD}/${section}`, page.url()).href);
    const command = await commandOf(page);
    await assertWellShown(page);
    if (section !== 'console') await runInShell(command);
  }
});
