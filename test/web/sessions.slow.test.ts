import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { systemClock } from '#shared/clock/clock.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { INSTANCES } from '../../noded/records/instance-repository.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { benchRecord } from '../bench/support/cluster-records.ts';
import { succeed } from '../e2e/support/ask-nodes.ts';
import { endLab } from '../e2e/support/end-lab.ts';
import { freePorts } from '../noded/support/free-ports.ts';
import { assertAccessible } from './support/axe.ts';
import { noBrowser, openInBrowser } from './support/browser.ts';

/** Login, a restart of the node below an open page, and a long list of instances. */
const COUNT = 20_000;
const AT_ONCE = 500;
const PASSWORD = 'secret';
/** HTTP/1.1 connections of a browser to one host. */
const CONNECTIONS = 6;
const SLEEPY = 'sleepy.example.com';
const BOUND = { skip: noBrowser };
let lab: Lab;
let options: readonly string[];
let origin: string;

before(async () => {
  lab = await createLab('gnt-web-sessions');
  await lab.startNode();
  await lab.stopNode();
  await fill();
  const users = join(lab.paths.root, 'users');
  const digest = createHash('md5').update(`alice:Ganeti Remote API:${PASSWORD}`).digest('hex');
  await writeFile(users, `alice {HA1}${digest} write\n`, { mode: 0o600 });
  const [port] = await freePorts(1);
  origin = `https://127.0.0.1:${port}`;
  options = ['--web', `127.0.0.1:${port}`, '--web-users', users];
  await lab.startNode(...options);
});

after(() => endLab(lab));

async function fill(): Promise<void> {
  const store = createSqliteStore({ path: lab.paths.storeFile, clock: systemClock });
  for (let begin = 0; begin < COUNT; begin += AT_ONCE) {
    const records = Array.from({ length: AT_ONCE }, (_, index) =>
      benchRecord(begin + index, 'node1.example.com'),
    );
    await store.commit(
      records.map((value) => ({
        ...{ collection: INSTANCES, id: value.uuid, expected: 'absent' as const, value },
      })),
    );
  }
  await store.close();
}

async function logIn(page: Page, password = PASSWORD): Promise<void> {
  await page.getByLabel('User').fill('alice');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

test('the login is accessible, and says why it refuses', BOUND, async (t) => {
  const page = await openInBrowser(t, `${origin}/jobs`);
  await page.getByLabel('User').waitFor();
  await assertAccessible(page);
  await logIn(page, 'wrong');
  await page.getByRole('alert').getByText(/\w/).waitFor();
  await logIn(page);
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('User').waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Jobs' }).count(), 0);
});

test(
  'of 20,000 instances only the visible rows exist, and filter and keys find the others',
  BOUND,
  async (t) => {
    const page = await openInBrowser(t, origin);
    await logIn(page);
    await page.getByText('20,000 instances').waitFor();
    const rows = page.locator('tbody tr[data-index]');
    assert.ok((await rows.count()) < 100);
    await page.getByRole('link', { name: 'bench0.' }).focus();
    await page.keyboard.press('End');
    await page.getByRole('link', { name: 'bench19999.' }).waitFor();
    assert.ok((await rows.count()) < 100);
    await page.keyboard.press('/');
    await page.keyboard.type('bench1234?.');
    await page.getByText('0 of 20,000 instances').waitFor();
    await page.getByRole('searchbox').fill('bench1234?.*');
    await page.getByText('10 of 20,000 instances').waitFor();
    await assertAccessible(page);
  },
);

test('numbers follow the locale of the browser', BOUND, async (t) => {
  const page = await openInBrowser(t, origin, { locale: 'de-DE' });
  await logIn(page);
  await page.getByText('20.000 instances').waitFor();
});

test('a page goes on after a restart of its node and a new login', BOUND, async (t) => {
  const page = await openInBrowser(t, `${origin}/instances?name=bench7.`);
  await logIn(page);
  await page.getByText('Live').waitFor();
  const field = page.getByRole('searchbox');
  await field.evaluate((element) => element.setAttribute('data-kept', 'yes'));
  await lab.stopNode();
  await page.getByText(/has not answered since/).waitFor();
  await lab.startNode(...options);
  await logIn(page);
  await page.getByText('Live').waitFor();
  await page.getByRole('link', { name: 'bench7.' }).waitFor();
  // The same element: the page was below the login, and was not made again.
  assert.equal(await field.getAttribute('data-kept'), 'yes');
});

/** Forwards a loopback port to another one until it is cut. */
async function createWire(t: TestContext, to: number) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const node = connect(to, '127.0.0.1');
    for (const [from, onto] of [
      [socket, node],
      [node, socket],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined).on('close', () => onto.destroy());
      from.pipe(onto);
    }
  });
  const listen = async (at: number): Promise<number> => {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(cut);
  const port = await listen(0);
  return { port, cut, repair: () => listen(port) };
}

/** Sets the memory of an instance by a command. */
async function setMemory(memory: string): Promise<void> {
  await succeed(lab, 'gnt-instance', 'modify', '-B', `memory=${memory}`, SLEEPY);
}

test('a page that was asleep or cut off shows what happened meanwhile', BOUND, async (t) => {
  const image = join(lab.paths.root, 'image.raw');
  await writeFile(image, Buffer.alloc(65_536));
  await succeed(
    lab,
    'gnt-instance',
    ...['add', '--no-install', '-s', '8M', '--os-image', image, SLEEPY],
  );
  const wire = await createWire(t, Number(new URL(origin).port));
  const page = await openInBrowser(t, `https://127.0.0.1:${wire.port}/instances?name=sleepy`);
  await logIn(page);
  await page.getByText('Live').waitFor();
  const row = page.getByRole('row', { name: SLEEPY });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
  await setMemory('3G');
  await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  await row.getByText('3 GiB').waitFor();
  wire.cut();
  const notice = page.getByText(/has not answered since/);
  await notice.waitFor();
  await assertAccessible(page);
  await setMemory('5G');
  await row.getByText('3 GiB').waitFor();
  await wire.repair();
  await row.getByText('5 GiB').waitFor();
  await notice.waitFor({ state: 'detached' });
});

test('after a logout, the back button shows no record', BOUND, async (t) => {
  const page = await openInBrowser(t, `${origin}/instances?name=bench9.`, {
    hasBackForwardCache: true,
  });
  await logIn(page);
  await page.getByRole('link', { name: 'bench9.' }).waitFor();
  await page.goto(`${origin}/jobs`);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('User').waitFor();
  await page.evaluate('history.back()');
  await page.waitForURL(/bench9/);
  await page.getByLabel('User').waitFor();
  assert.equal(await page.getByRole('link', { name: 'bench9.' }).count(), 0);
});

test(
  'seven tabs of one browser work: a tab out of view ends its stream, and catches up in view',
  BOUND,
  async (t) => {
    const page = await openInBrowser(t, `${origin}/jobs`);
    await logIn(page);
    await page.getByText('Live').waitFor();
    const lists: string[] = [];
    page.on('request', (request) => {
      if (/instance-summaries/.test(request.url())) lists.push(request.url());
    });
    const hidden = [hide(page)];
    const openTab = async (): Promise<Page> => {
      const tab = await page.context().newPage();
      await tab.goto(`${origin}/networks`);
      await tab.getByText('Live').waitFor();
      return tab;
    };
    for (let count = 2; count <= CONNECTIONS; count += 1) hidden.push(hide(await openTab()));
    await Promise.all(hidden);
    await openTab();
    const { status, stderr } = await lab.run('gnt-cluster', [
      ...['modify', '--default-memory', '1G'],
    ]);
    assert.equal(status, 0, stderr);
    await turn(page, 'visible');
    await page.getByRole('row', { name: /CLUSTER/ }).waitFor();
    assert.deepEqual(lists, []);
  },
);

/** Hides a tab until its stream of events has ended. */
async function hide(page: Page): Promise<void> {
  const ended = page.waitForEvent('requestfailed', (request) => /events/.test(request.url()));
  await turn(page, 'hidden');
  await ended;
}

/** Headless tabs are always in view, so the test says that this one is not. */
async function turn(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate((next) => {
    Object.defineProperty(document, 'hidden', { value: next === 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);
}
