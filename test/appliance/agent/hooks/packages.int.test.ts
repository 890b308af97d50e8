import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';
import { hookDocument, TempRoot } from './support/temp-root.ts';

const REPOSITORY = join(import.meta.dirname, '../../../../fixtures/debian-repository');
const SOURCES = `Types: deb
URIs: http://deb.debian.org/debian http://someone:SECRET@elsewhere.invalid/other
Suites: stable
Components: main
Signed-By: /etc/apt/test.gpg
`;

/** This host's system, with changes in RAM. */
class HostCopy implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'gnt-packages-'));
  readonly path = join(this.#directory, 'root');

  constructor() {
    mkdirSync(this.path);
    const shell = (script: string): unknown =>
      execFileSync('sh', ['-euc', script], { cwd: this.#directory });
    shell(
      'mkdir ram && mount -t tmpfs none ram && mkdir ram/upper ram/work && mount -t overlay -o lowerdir=/,upperdir=ram/upper,workdir=ram/work overlay root',
    );
    shell('rm -f root/usr/sbin/policy-rc.d');
    // Hides the packages of this host.
    shell('rm -rf root/var/lib/dpkg && mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info');
    shell(': >root/var/lib/dpkg/status; rm -rf root/etc/apt; mkdir -p root/etc/apt/sources.list.d');
    shell('mkdir -p root/etc/apt/preferences.d root/etc/apt/apt.conf.d root/etc/apt/trusted.gpg.d');
  }

  [Symbol.dispose](): void {
    execFileSync('umount', [this.path, join(this.#directory, 'ram')]);
    rmSync(this.#directory, { recursive: true });
  }
}

test("the instance's apt installs packages from allowed mirrors, and its temporary files are removed", async () => {
  using host = new HostCopy();
  const at = (path: string): string => join(host.path, path);
  writeFileSync(at('etc/apt/sources.list.d/debian.sources'), SOURCES);
  copyFileSync(join(REPOSITORY, 'keyring.gpg'), at('etc/apt/test.gpg'));
  rmSync(at('etc/os-release'), { force: true });
  writeFileSync(at('etc/os-release'), 'ID=derived\nID_LIKE="debian"\n');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    readFile(join(REPOSITORY, (request.url ?? '').replace('/mirror/debian/', ''))).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  const port = await listenOnLoopback(server);
  using root = new TempRoot();
  const install = (environment: Record<string, string>): Promise<string> =>
    root
      .open(
        [hookDocument('stages: {after-install-chroot: [{packages: {install: [base-files]}}]}')],
        {
          instancePath: host.path,
          environment: async () => ({ PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ...environment }),
        },
      )
      .run('after-install-chroot', root.reporter);
  try {
    await assert.rejects(install({}), {
      message: /none of its package sources has an allowed mirror/,
    });
    await install({ GNT_MIRROR_DEBIAN: `http://127.0.0.1:${port}/mirror/debian` });
  } finally {
    server.closeAllConnections();
    server.close();
  }
  const note = readFileSync(at('usr/share/base-files/note'), 'utf8');
  assert.equal(note, 'base-files of the test repository\n');
  assert.ok(asked.includes('/mirror/debian/dists/stable/InRelease'), asked.join(' '));
  assert.ok(
    root.lines.includes(
      'packages: skipped http://elsewhere.invalid/other, no mirror is allowed for it',
    ),
  );
  assert.ok(!root.lines.join('\n').includes('SECRET'));
  assert.deepEqual(readdirSync(at('etc/apt')).sort().includes('gnt-installation.list'), false);
  assert.ok(!existsSync(at('var/lib/apt/gnt-lists')));
  assert.ok(!existsSync(at('usr/sbin/policy-rc.d')));
});

test("the instance's apk installs packages from the repositories of the mirror", async () => {
  using root = new TempRoot({
    '/etc/os-release': 'ID=alpine\n',
    '/etc/apk/repositories':
      'https://dl-cdn.alpinelinux.org/alpine/v3.20/main\n#https://x/alpine/edge\n@t http://y/alpine/edge/testing\n/media/cdrom\n',
    '/bin/apk': '#!/bin/sh\necho "$@" >>/srv/said; cat "$3" >>/srv/said\n',
  });
  await root
    .open(
      [
        hookDocument(
          'stages: {after-install-chroot: [{packages: {refresh: yes, install: [a, b=1], remove: [c]}}]}',
        ),
      ],
      { environment: async () => ({ PATH: '/bin', GNT_MIRROR_ALPINE: 'http://m/alpine' }) },
    )
    .run('after-install-chroot', root.reporter);
  const said = readFileSync(join(root.path, 'srv/said'), 'utf8').replaceAll(
    '--no-cache --repositories-file /etc/apk/gnt-installation ',
    '',
  );
  const repositories = 'http://m/alpine/v3.20/main\n@t http://m/alpine/edge/testing\n';
  assert.equal(
    said,
    `update\n${repositories}add -- a b=1\n${repositories}del -- c\n${repositories}`,
  );
  assert.deepEqual(readdirSync(join(root.path, 'etc/apk')), ['repositories']);
});

test('packages of an unsupported distribution are an error with its name', async () => {
  using root = new TempRoot({ '/etc/os-release': 'ID=arch\n' });
  const book = root.open([
    hookDocument('stages: {after-install-chroot: [{packages: {install: [a]}}]}'),
  ]);
  await assert.rejects(book.run('after-install-chroot', root.reporter), {
    message: /packages: packages of 'arch' cannot be installed from a mirror$/,
  });
});
