import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { openBootArchives, type ReadArchive } from '../../../noded/netboot/archives.ts';
import type { BootSource } from '../../../noded/netboot/boot-plan.ts';
import {
  createPromisedTrees,
  listPromisedContents,
  type PromisedTrees,
} from '../../../noded/netboot/promised-trees.ts';
import { listenOnLoopback } from '../../lab/listen-on-loopback.ts';

const OWN = '5f0ae8c6-6e0b-4ad0-9f8e-0c3b3a9f7b01';
const OTHER = '5f0ae8c6-6e0b-4ad0-9f8e-0c3b3a9f7b02';
const CONTENTS = ['a', 'b'].map((letter) => letter.repeat(64));

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-promised-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const archivesDir = join(dir, 'archives');
  const promises = join(dir, 'promises');
  const allowed = new Set<string>();
  /** Starts a daemon. */
  const start = async () => {
    const archives = await openBootArchives(archivesDir, () => listPromisedContents(promises));
    const isAllowed = (url: string) => Promise.resolve(allowed.has(url));
    const promised = createPromisedTrees({
      ...{ dir: promises, archives, isAllowed, logger: silentLogger },
    });
    return { archives, promised };
  };
  /** Opens an archive with one file. */
  const keep = async (archives: Awaited<ReturnType<typeof openBootArchives>>, sha256: string) => {
    await using target = await archives.create(sha256, 1 << 20);
    const written = `${sha256}0 64 linux\n${'gnt-index 64'.padEnd(63)}\n`;
    await writeFile(target.path, written, { flag: 'r+' });
    await target.keep('d.iso', written.length, UNREAD, AbortSignal.timeout(10_000));
  };
  return { start, keep, allowed, promises, archivesDir };
}

/** The index is of the output, so that the archive itself is not read. */
const UNREAD: ReadArchive = {
  ...{ path: '/nonexistent', sizeBytes: 0, verifyUnchanged: async () => undefined },
};

function show(promised: PromisedTrees, uuid: string, source: BootSource): void {
  promised.offer(uuid, source);
  promised.settle(uuid, true);
}

async function read(promised: PromisedTrees, uuid = OWN): Promise<string> {
  const tree = await promised.find(uuid);
  if (tree === undefined) return 'no tree';
  const signal = AbortSignal.timeout(10_000);
  const answer = await tree.open({ path: 'linux', method: 'GET', headers: {}, signal });
  if (answer.kind === 'refusal') return answer.reason;
  if (answer.kind === 'answer') return Buffer.concat(await answer.body.toArray()).toString();
  await using handle = answer.handle;
  const bytes = Buffer.alloc(answer.sizeBytes);
  await handle.read(bytes, 0, bytes.length, answer.offset);
  return bytes.toString();
}

test('a restarted daemon serves a running instance the content of its former boot tree', async (t) => {
  const { start, keep, promises, archivesDir } = await createLab(t);
  const [first = '', second = ''] = CONTENTS;
  const before = await start();
  await keep(before.archives, first);
  show(before.promised, OWN, { kind: 'archive', isoFile: 'd.iso', sha256: first });
  show(before.promised, OTHER, { kind: 'archive', isoFile: 'd.iso', sha256: first });
  // The name gets other content while no request holds the tree.
  await keep(before.archives, second);
  assert.equal((await stat(join(promises, `${OWN}.json`))).mode & 0o777, 0o600);

  const after = await start();
  after.promised.restore();
  after.promised.keepOnly([OWN]);
  assert.equal(await read(after.promised), first);
  assert.equal(await read(after.promised, OTHER), 'no tree');

  after.promised.forget(OWN);
  assert.deepEqual(await readdir(promises), []);
  const last = await start();
  last.promised.restore();
  assert.equal(await read(last.promised), 'no tree');
  const left = (await readdir(archivesDir)).filter((name) => name.startsWith(first));
  assert.deepEqual(left, []);
});

test('an instance gets the planned content after its name gets other content', async (t) => {
  const { start, keep } = await createLab(t);
  const [first = '', second = ''] = CONTENTS;
  const { archives, promised } = await start();
  await keep(archives, first);
  await archives.name('old.iso', first);
  const planned = archives.find('d.iso', '');
  await keep(archives, second);
  assert.ok(planned);
  show(promised, OWN, { kind: 'archive', isoFile: 'd.iso', sha256: planned.sha256 });
  assert.equal(await read(promised), first);
});

test('a malformed promise file is removed and gives no tree', async (t) => {
  const { start, promises } = await createLab(t);
  const { promised } = await start();
  show(promised, OWN, { kind: 'repository', url: 'http://127.0.0.1:9/debian' });
  await writeFile(join(promises, `${OWN}.json`), '{"kind":"archive","sha256":"../../etc/passwd"}');
  const after = await start();
  after.promised.restore();
  assert.equal(await read(after.promised), 'no tree');
  assert.deepEqual(await readdir(promises), []);
});

test('a repository is refused from the first request after its permission ends', async (t) => {
  const { start, allowed } = await createLab(t);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('kernel');
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/debian`;
  t.after(() => server.close());
  const { promised } = await start();
  allowed.add(url);
  show(promised, OWN, { kind: 'repository', url });
  assert.equal(await read(promised), 'kernel');
  allowed.delete(url);
  assert.match(await read(promised), /no longer allowed/);
  assert.deepEqual(asked, ['/debian/linux']);
});

test('an unfinished promise file of a killed daemon is removed', async (t) => {
  const { start, promises, allowed } = await createLab(t);
  const { promised } = await start();
  allowed.add('http://127.0.0.1:1/');
  show(promised, OWN, { kind: 'repository', url: 'http://127.0.0.1:1/' });
  await writeFile(join(promises, `${OTHER}.json.new`), '{');
  const after = await start();
  after.promised.restore();
  after.promised.keepOnly([OWN, OTHER]);
  assert.deepEqual(await readdir(promises), [`${OWN}.json`]);
  assert.equal(await after.promised.find(OTHER), undefined);
});

const archiveOf = (sha256: string): BootSource => ({ kind: 'archive', isoFile: 'd.iso', sha256 });

test('a request during a push waits for its result, and gets the tree of the view that metad has', async (t) => {
  const { start, keep } = await createLab(t);
  const [first = '', second = ''] = CONTENTS;
  const { archives, promised } = await start();
  await keep(archives, first);
  await archives.name('old.iso', first);
  await keep(archives, second);
  show(promised, OWN, archiveOf(first));
  promised.offer(OWN, archiveOf(second));
  const asked = read(promised);
  promised.settle(OWN, true);
  assert.equal(await asked, second);

  promised.offer(OWN, null);
  const gone = read(promised);
  promised.settle(OWN, false);
  assert.equal(await gone, second, 'metad shows the machine what it had');
  promised.offer(OWN, null);
  promised.settle(OWN, true);
  assert.equal(await read(promised), 'no tree');
  // Settles a view without any offer.
  promised.settle(OWN, true);
  assert.equal(await read(promised), 'no tree');
});

test('a refused view leaves the instance its files, and keeps the files of the refused view', async (t) => {
  const { start, keep, promises, archivesDir } = await createLab(t);
  const [first = '', second = ''] = CONTENTS;
  const { archives, promised } = await start();
  await keep(archives, first);
  show(promised, OWN, archiveOf(first));
  await keep(archives, second);
  promised.offer(OWN, archiveOf(second));
  promised.settle(OWN, false);
  assert.equal(await read(promised), first);
  await archives.remove('d.iso');
  const kept = (): Promise<string[]> => readdir(archivesDir);
  assert.equal((await kept()).filter((name) => name.endsWith('.data')).length, 2);
  // A restarted daemon pushes its view again.
  const after = await start();
  after.promised.restore();
  assert.equal(await read(after.promised), first);

  promised.offer(OWN, archiveOf(second));
  promised.settle(OWN, true);
  assert.equal(await read(promised), second);
  promised.forget(OWN);
  await archives.dropUnnamed();
  assert.deepEqual(await kept(), ['names.json']);
  assert.deepEqual(await readdir(promises), []);
});
