import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { succeed } from '../e2e/support/ask-nodes.ts';
import { addDefinitions } from '../e2e/support/definitions.ts';
import { endLab } from '../e2e/support/end-lab.ts';
import { freePorts } from '../noded/support/free-ports.ts';
import { noBrowser, openInBrowser } from './support/browser.ts';
import { tabTo } from './support/keyboard.ts';
import { assertWellShown } from './support/sizes.ts';
import { findMarkup, MARKUP, spoilAnswers } from './support/spoil-answers.ts';
import { openWeb } from './support/web-lab.ts';

/** Forms and pages of the cluster in Chromium, with real installations. */
const WITH_SECRET = 'secretive';
const HOSTILE = 'hostile';
const BOUND = { skip: noBrowser };
const PASSWORD = 'secret';
const PAGES = [
  ...['/instances', '/launch', '/jobs', '/jobs/1', '/nodes', '/charts', '/images', '/networks'],
  ...['/profiles', '/os', '/bootenvs'],
];
const PARTS = ['', '/installation', '/parameters', '/metadata', '/audit', '/reinstall'];
/** Pages that show no text of an answer here. */
const TEXTLESS: ReadonlySet<string> = new Set(['/launch', '/bootenvs']);

let lab: Lab;
let image: string;
let tlsOrigin: string;

before(async () => {
  lab = await createLab('gnt-forms');
  image = join(lab.paths.root, 'small.img');
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  await addDefinitions(lab, 'hello');
  await addHostileDefinition();
  const users = join(lab.paths.root, 'users');
  const digest = createHash('md5').update(`bound:Ganeti Remote API:${PASSWORD}`).digest('hex');
  await writeFile(users, `bound {HA1}${digest} write,instance:mine-*\n`, { mode: 0o600 });
  const [port] = await freePorts(1);
  tlsOrigin = `https://127.0.0.1:${port}`;
  await lab.startNode('--web', `127.0.0.1:${port}`, '--web-users', users);
  await succeed(lab, 'gnt-network', 'add', ...['--network', '10.9.0.0/24', 'lan']);
  await succeed(lab, 'gnt-profile', 'modify', '-O', `text=${MARKUP}`, 'marked');
});

after(async () => {
  for (const name of [WITH_SECRET, HOSTILE])
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
  await endLab(lab);
});

/** Its texts contain markup. Its script prints markup and fails. */
async function addHostileDefinition(): Promise<void> {
  await addDefinitions(lab, 'failing');
  const [osDir = ''] = lab.paths.osSearchPath;
  const folder = join(osDir, 'failing');
  await mkdir(join(folder, 'untrusted'), { recursive: true });
  await writeFile(join(folder, 'parameters.list'), `greeting ${MARKUP}\n`);
  const script = join(folder, 'untrusted/create');
  await writeFile(
    script,
    `#!/bin/sh\nprintf '%s\\n' '${MARKUP}' '\\033]0;hostile\\007' >&2\nprintf '\\342\\200\\256txt\\n' >&2\nexit 3\n`,
  );
  await chmod(script, 0o755);
}

async function openPage(t: TestContext): Promise<Page> {
  const { nextLink } = await openWeb(t, lab);
  return openInBrowser(t, await nextLink());
}

function partOfSecretive(part: string): string {
  return `/instances/${WITH_SECRET}${part}`;
}

async function show(page: Page, path: string): Promise<void> {
  await page.goto(new URL(path, page.url()).href);
}

/** Fills the form of a creation that installs an image with an OS definition. */
async function fillLaunch(page: Page, name: string, os: string): Promise<void> {
  await show(page, '/launch');
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Image', { exact: true }).fill(image);
  await page.getByLabel('Disk', { exact: true }).fill('32M');
  await page.getByText('OS definition, parameters, profiles').click();
  await page.getByLabel('OS definition', { exact: true }).selectOption(os);
}

async function addParameter(
  page: Page,
  number: number,
  [name, value, visibility]: readonly [string, string, string],
): Promise<void> {
  await page.getByRole('button', { name: 'Add a parameter' }).click();
  await page.getByLabel(`Name of parameter ${number}`).fill(name);
  await page.getByLabel(`Visibility of parameter ${number}`).selectOption(visibility);
  await page.getByLabel(`Value of parameter ${number}`).fill(value);
}

test('the keyboard alone launches an instance, and another browser sees it', BOUND, async (t) => {
  const page = await openPage(t);
  const other = await openPage(t);
  const { keyboard } = page;
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  await tabTo(page, page.getByRole('link', { name: 'Launch' }));
  await keyboard.press('Enter');
  await tabTo(page, button('Launch'));
  await keyboard.press('Enter');
  await page.getByText('Give the instance a name, such as web1.').waitFor();
  // The first field with a fault has the focus.
  await page.locator('input:focus').waitFor();
  await keyboard.type(WITH_SECRET);
  for (const [name, value] of [
    ['Image', image],
    ['Disk', '32M'],
  ] as const) {
    await tabTo(page, field(name));
    await keyboard.type(value);
  }
  await tabTo(page, page.locator('summary', { hasText: 'OS definition, parameters' }));
  await keyboard.press('Enter');
  await tabTo(page, field('OS definition'));
  await keyboard.type('hello');
  for (const [name, value, visibility] of [
    ['greeting', 'hi', 'public'],
    ['api-key', 'correct-horse', 'secret'],
  ] as const) {
    await tabTo(page, button('Add a parameter'));
    await keyboard.press('Enter');
    // The new row has the focus.
    await page.getByPlaceholder('name', { exact: true }).and(page.locator(':focus')).waitFor();
    for (const text of [name, value, visibility]) {
      await keyboard.type(text);
      await keyboard.press('Tab');
    }
  }
  await tabTo(page, page.getByLabel('Start the instance after the installation'));
  await keyboard.press('Space');
  await page.getByText('The node accepts this.').waitFor();
  const command = await page.locator('.command code').innerText();
  assert.match(command, /^gnt-instance add .*--os-type hello.* secretive$/);
  assert.match(command, /--os-parameters-secret api-key=@api-key\.txt/);
  assert.doesNotMatch(command, /correct-horse/);
  await tabTo(page, button('Launch'));
  await keyboard.press('Enter');
  await other.getByRole('row', { name: WITH_SECRET }).waitFor();
  await page.getByRole('definition').getByText('success').waitFor();
  await show(page, '/launch');
  await field('Name').fill(WITH_SECRET);
  await field('Image').fill(image);
  // The node's refusal is at the field that it concerns.
  await page.locator('.field', { hasText: 'host name of the guest' }).getByText(/exist/).waitFor();
});

test('a reinstallation asks for the secret again, and shows its command', BOUND, async (t) => {
  const page = await openPage(t);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await show(page, `/instances/${WITH_SECRET}/reinstall`);
  await page.getByText(/Secrets are never stored/).waitFor();
  assert.equal(await page.getByLabel('Name of parameter 1').inputValue(), 'api-key');
  assert.equal(await page.getByLabel('Value of parameter 1').inputValue(), '');
  await page
    .locator('.problem')
    .getByText(/api-key/)
    .first()
    .waitFor();
  await page.getByLabel('Value of parameter 1').fill('new-horse');
  await page.getByText('The node accepts this.').waitFor();
  await assertWellShown(page);
  const open = page.getByRole('button', { name: 'Reinstall' });
  await tabTo(page, open);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await assertWellShown(page);
  await tabTo(page, dialog.getByRole('button', { name: 'Copy' }));
  await page.keyboard.press('Enter');
  await dialog.getByText('Copied', { exact: true }).waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  assert.match(copied, /^gnt-instance reinstall .*--os-parameters-secret .* secretive$/);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  assert.ok(await open.evaluate((element) => element === document.activeElement));
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByLabel(`Type ${WITH_SECRET} to confirm`));
  await page.keyboard.type(WITH_SECRET);
  await page.keyboard.press('Enter');
  const notice = page.locator('.notice', { hasText: /Job \d+, INSTANCE_REINSTALL.*: success/ });
  assert.equal(await notice.locator('code').innerText(), copied);
});

test('each page is accessible in both colours, on a phone and on a 4K screen', BOUND, async (t) => {
  const page = await openPage(t);
  for (const path of PAGES) {
    await show(page, path);
    await page.locator('main:not(:has-text("Loading …")) h1').waitFor();
    for (const summary of await page.locator('summary').all()) await summary.click();
    for (const name of ['disk', 'interface', 'parameter', 'document']) {
      const add = page.getByRole('button', { name: new RegExp(`^Add an? ${name}$`) });
      if ((await add.count()) > 0) await add.click();
    }
    await assertWellShown(page);
  }
});

test('no text of any answer becomes markup', BOUND, async (t) => {
  const page = await openPage(t);
  await spoilAnswers(page);
  for (const path of [...PAGES, ...PARTS.map(partOfSecretive)]) {
    await show(page, path);
    if (!TEXTLESS.has(path)) await page.locator('main').getByText(MARKUP).first().waitFor();
    assert.deepEqual(await findMarkup(page), [], path);
  }
});

test('markup in a page would be found, and its policy refuses the script', BOUND, async (t) => {
  const profile: { end?: () => unknown } = {};
  const page = await openInBrowser(
    { after: (end) => void (profile.end = end as () => unknown) },
    await (await openWeb(t, lab)).nextLink(),
  );
  await page.locator('main h1').waitFor();
  const refused = page.waitForEvent('console', (message) =>
    /Content Security/.test(message.text()),
  );
  await page.evaluate(
    `document.querySelector('main').insertAdjacentHTML('beforeend', ${JSON.stringify(MARKUP)})`,
  );
  await refused;
  const found = await findMarkup(page);
  assert.equal(found.length, 2);
  assert.ok(!found.includes('a script of a text ran'));
  await assert.rejects(async () => profile.end?.(), /Content Security Policy/);
});

test('markup of users, scripts and definitions stays text', BOUND, async (t) => {
  const page = await openPage(t);
  await fillLaunch(page, HOSTILE, 'failing');
  await addParameter(page, 1, ['greeting', MARKUP, 'public']);
  await page.getByRole('button', { name: 'Launch' }).click();
  // The failure has its error and the end of the log.
  await page
    .getByRole('alert')
    .getByText(/script/)
    .first()
    .waitFor();
  await page.getByText(MARKUP).first().waitFor();
  const title = await page.title();
  for (const path of [
    ...['', '/installation', '/parameters', '/metadata', '/audit'].map(
      (part) => `/instances/${HOSTILE}${part}`,
    ),
    ...['/profiles', '/os', '/jobs', '/nodes', '/networks', '/images', '/bootenvs', '/instances'],
  ]) {
    await show(page, path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('main:not(:has-text("Loading …"))').waitFor();
    assert.equal(await page.evaluate('window.canary'), undefined, path);
    assert.equal(await page.locator('#app img, #app script').count(), 0, path);
    const text = await page.locator('#app').innerText();
    assert.equal(text.includes('\u001b') || text.includes('\u202e'), false, path);
  }
  assert.doesNotMatch(title, /^hostile$/);
  await show(page, '/profiles');
  await page.getByText(`text = ${MARKUP}`).waitFor();
  await show(page, '/os');
  await page.getByText('Parameters: 1').click();
  await page.getByText(MARKUP).waitFor();
});

test('a bound user sees and does only what the session allows', BOUND, async (t) => {
  const page = await openInBrowser(t, tlsOrigin);
  await page.getByLabel('User').fill('bound');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('There is no instance yet.').waitFor();
  const sections = await page
    .getByRole('navigation', { name: 'Main' })
    .getByRole('link')
    .allInnerTexts();
  for (const hidden of ['Nodes', 'Charts']) assert.equal(sections.includes(hidden), false, hidden);
  for (const path of ['/networks', '/profiles', '/os', '/bootenvs', '/images']) {
    await show(page, path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.equal(await page.getByRole('alert').count(), 0, path);
    assert.equal(await page.getByRole('button', { name: /Remove|Add|Trust|Update/ }).count(), 0);
  }
  await show(page, '/launch');
  await page.getByLabel('Name', { exact: true }).fill('foreign');
  await page.getByLabel('Image', { exact: true }).fill('https://example.com/a.raw');
  await page.locator('.problem').first().waitFor();
  await page.getByText('User data, node and tags').click();
  assert.equal(await page.getByLabel('Node', { exact: true }).count(), 0);
  // The check of the form ran as a job, which is not one of the user's.
  await page
    .getByText(/not allowed/)
    .first()
    .waitFor();
  const checks = await page.evaluate<boolean[]>(
    `fetch('/v1/jobs').then((answer) => answer.json())
      .then((jobs) => jobs.map(({ input }) => input.isDryRun === true))`,
  );
  assert.ok(checks.length > 0 && checks.every(Boolean));
  await show(page, '/jobs');
  await page.getByText('There is no job.').waitFor();
});
