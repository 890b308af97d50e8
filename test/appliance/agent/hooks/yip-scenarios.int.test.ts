import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { HookStage } from '#shared/contract/primitives.ts';
import { hookDocument, TempRoot } from './support/temp-root.ts';
import { listScenarios, readScenario } from './support/scenarios.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const STAGES: readonly HookStage[] = [
  'after-install-chroot.before',
  'after-install-chroot',
  'after-install-chroot.after',
];
const PASSWD = 'root:x:0:0:root:/root:/bin/sh\nlast:x:999:999::/:/bin/false\n';
const OWN_HASH = '$6$salt$of-the-image';
const UNIT = '[Unit]\nfoo=bar';

interface Scenario {
  readonly given?: Readonly<Record<string, string>>;
  /** Files afterwards; null for an absent one. */
  readonly expected: Readonly<Record<string, string | RegExp | null>>;
  /** Mode in octal, owner and group. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly error?: { readonly code: string; readonly message: RegExp };
}

const accounts = { '/etc/passwd': PASSWD, '/etc/shadow': '', '/etc/group': '' };

/** By the scenario's name in fixtures/yip; its README names the test of yip. */
const scenarios: Readonly<Record<string, Scenario>> = {
  'creates-dirs': { expected: {}, attributes: { '/srv/data': '777 0:0' } },
  'run-commands': {
    given: { '/srv/fruit': 'apple' },
    expected: { '/srv/fruit': 'pear' },
  },
  'in-sequence': { given: { '/srv/fruit': 'apple' }, expected: { '/srv/fruit': 'plum' } },
  'with-after': { given: { '/srv/fruit': 'apple' }, expected: { '/srv/fruit': 'plum' } },
  'reports-error': {
    given: { '/srv/fruit': 'apple' },
    expected: { '/srv/fruit': 'apple' },
    error: {
      code: 'HOOK_FAILED',
      message: /^step 'breaks' of cluster\/01_first\.yaml: commands 1: exited with status 1$/,
    },
  },
  'reports-error-optional': {
    given: { '/srv/fruit': 'apple' },
    expected: { '/srv/fruit': 'pear' },
  },
  'skip-with-if': {
    expected: { '/srv/fruit': 'pear\n', '/srv/jar': 'jam\n', '/srv/wrong': null },
  },
  'unnamed-steps': { expected: { '/srv/log': 'one\ntwo\nthree\nfour\n' } },
  'same-names': { expected: { '/srv/log': 'one\ntwo\nthree\nfour\n' } },
  'multiple-instructions': { expected: { '/srv/log': 'before\none\ntwo\nafter\n' } },
  'different-files': {
    expected: {
      '/srv/log': '1.before\n2.before\n1.one\n1.two\n2.one\n2.two\n1.after\n2.after\n',
    },
  },
  'same-in-cloud-config': { expected: { '/srv/log': '01\n02\n03\n' } },
  'cloud-config-boot': { expected: { '/srv/wrong': null, '/etc/hostname': null } },
  'dir-new': { expected: {}, attributes: { '/srv/dir': '740 7:8', '/srv': '755 0:0' } },
  'dir-parents': {
    expected: {},
    attributes: {
      '/srv': '755 0:0',
      '/srv/dir': '740 0:0',
      '/srv/dir/subdir1/subdir2': '740 0:0',
    },
  },
  'files-new': { expected: { '/srv/file': 'Words' }, attributes: { '/srv/file': '777 7:8' } },
  'files-parents': {
    expected: { '/srv/dir/subdir/file': 'Words' },
    attributes: { '/srv/dir/subdir/file': '640 0:0', '/srv/dir/subdir': '740 0:0' },
  },
  'files-encodings': {
    given: {
      '/etc/passwd': 'gardener:x:1001:1002::/:/bin/sh\n',
      '/etc/group': 'staff:x:50:\n',
    },
    expected: { '/srv/b64': 'Words', '/srv/gz-b64': 'Words' },
    attributes: { '/srv/owned': '644 1001:50' },
  },
  dns: {
    expected: {
      '/etc/resolv.conf': 'search example.com\nnameserver 192.0.2.53\noptions edns0\n',
    },
  },
  environment: {
    given: { '/etc/environment': '# ours\nPATH="/bin"\nGREETING=old\n' },
    expected: { '/etc/environment': '# ours\nPATH="/bin"\nfoo=0\nGREETING="good morning"\n' },
  },
  'environment-file': {
    expected: { '/srv/app/layout.env': 'foo=0\n' },
    attributes: { '/srv/app': '744 0:0' },
  },
  hostname: {
    given: { '/etc/hostname': 'old', '/etc/hosts': '127.0.0.1 old\n::1 localhost' },
    expected: {
      '/etc/hostname': 'fruit\n',
      '/etc/hosts': '127.0.0.1 localhost fruit\n::1 localhost\n',
    },
  },
  sysctl: {
    expected: { '/etc/sysctl.d/99-gnt-hooks.conf': 'debug.exception-trace = 0\n' },
  },
  'authorized-keys': {
    given: {
      '/etc/passwd': 'gardener:x:1000:100:g:/home/gardener:/bin/zsh\n',
      '/home/gardener/.ssh/authorized_keys': 'ssh-rsa AAAAold',
    },
    expected: {
      '/home/gardener/.ssh/authorized_keys':
        'ssh-rsa AAAAold\nssh-ed25519 AAAAnew gardener@example.com\n',
    },
    attributes: {
      '/home/gardener/.ssh': '700 1000:100',
      '/home/gardener/.ssh/authorized_keys': '600 1000:100',
    },
  },
  systemctl: {
    given: { '/bin/systemctl': '#!/bin/sh\necho "$@ offline=$SYSTEMD_OFFLINE" >>/srv/log\n' },
    expected: {
      '/srv/log': 'enable -- foo offline=1\ndisable -- bar offline=1\nmask -- baz offline=1\n',
    },
  },
  'systemctl-overrides': {
    expected: {
      '/etc/systemd/system/a.service.d/override-yip.conf': UNIT,
      '/etc/systemd/system/b.service.d/override-yip.conf': UNIT,
      '/etc/systemd/system/c.service.d/override-c.conf': UNIT,
      '/etc/systemd/system/d.service.d/override-d.conf': UNIT,
    },
  },
  'user-password': {
    given: accounts,
    expected: {
      '/etc/passwd': `${PASSWD}foo:x:1000:1000::/home/foo:/bin/sh\n`,
      '/etc/group': 'foo:x:1000:foo\n',
      '/etc/shadow': /^foo:\$fixedHash:\d{5,}::::::\n$/,
      '/home/foo/.ssh/authorized_keys': 'ssh-ed25519 AAAAfoo foo@example.com\n',
    },
    attributes: { '/home/foo': '755 1000:1000' },
  },
  'user-uid-locked': {
    given: accounts,
    expected: {
      '/etc/passwd': `${PASSWD}foo:x:5000:1000::/srv/foo:/bin/bash\n`,
      '/etc/shadow': /^foo:!:\d+::::::\n$/,
    },
    attributes: { '/srv/foo': '755 5000:1000' },
  },
  'users-groups': {
    given: accounts,
    expected: {
      '/etc/group': 'admin:x:1000:admin,bar,baz\nbar:x:1001:bar\nbaz:x:1002:baz\n',
      // Without a password, password login is locked.
      '/etc/shadow': /^admin:\$fixedHash:.*\nbar:!:.*\nbaz:!:/,
    },
  },
  'users-order': {
    given: accounts,
    expected: {
      '/etc/passwd': `${PASSWD}${['a', 'bar', 'foo', 'x']
        .map((name, index) => `${name}:x:${1000 + index}:${1000 + index}::/home/${name}:/bin/sh\n`)
        .join('')}`,
    },
  },
  'only-os': {
    given: {
      '/usr/lib/os-release': 'PRETTY_NAME="Orchard 1.10 (apple)"\nID=orchard\nVERSION_ID="1.10"\n',
    },
    expected: { '/srv/log': 'os\nid\nversion\narch\n' },
  },
  'if-files': {
    given: { '/srv/one': '', '/srv/two': '' },
    expected: { '/srv/log': 'all\nany\nnone\nempty\n' },
  },
  'if-files-unknown': {
    expected: {},
    error: { code: 'HOOK_FAILED', message: /step 1: if_files: unknown field "most"/ },
  },
};

async function runScenario(root: TempRoot, name: string): Promise<void> {
  const book = root.open(readScenario(name));
  for (const stage of STAGES) if (book.has(stage)) await book.run(stage, root.reporter);
}

for (const [name, { given, expected, attributes, error }] of Object.entries(scenarios)) {
  test(`yip's scenario ${name}`, async () => {
    using root = new TempRoot(given);
    if (error) await assert.rejects(runScenario(root, name), error);
    else await runScenario(root, name);
    for (const [path, content] of Object.entries(expected)) {
      const file = join(root.path, path);
      if (content === null) assert.ok(!existsSync(file), `${path} is there`);
      else if (typeof content === 'string') assert.equal(readFileSync(file, 'utf8'), content, path);
      else assert.match(readFileSync(file, 'utf8'), content, path);
    }
    for (const [path, wanted] of Object.entries(attributes ?? {})) {
      const { mode, uid, gid } = statSync(join(root.path, path));
      assert.equal(`${(mode & 0o7777).toString(8)} ${uid}:${gid}`, wanted, path);
    }
  });
}

test("yip's scenario dir-new changes the mode of an existing directory", async () => {
  using root = new TempRoot({ '/srv/dir/kept': '' });
  chmodSync(join(root.path, 'srv/dir'), 0o755);
  await runScenario(root, 'dir-new');
  assert.equal(statSync(join(root.path, 'srv/dir')).mode & 0o7777, 0o740);
  assert.ok(existsSync(join(root.path, 'srv/dir/kept')));
});

test("yip's scenario user-password changes the password of an existing user, and keeps its ageing", async () => {
  using root = new TempRoot({
    ...accounts,
    '/etc/passwd': 'foo:x:1234:1234::/home/foo:/bin/zsh\n',
    '/etc/shadow': `foo:${OWN_HASH}:18820:1:365:14:30:20000:\nbar:${OWN_HASH}:18820::::::\n`,
  });
  await runScenario(root, 'user-password');
  const read = (path: string): string => readFileSync(join(root.path, path), 'utf8');
  assert.equal(read('etc/passwd'), 'foo:x:1234:1234::/home/foo:/bin/zsh\n');
  assert.match(
    read('etc/shadow'),
    /^foo:\$fixedHash:\d+:1:365:14:30:20000:\nbar:\$6\$salt\$of-the-image:18820::::::\n$/,
  );
});

test("yip's scenario users-order gives the same ids when it is run again", async () => {
  using root = new TempRoot(accounts);
  await runScenario(root, 'users-order');
  const first = readFileSync(join(root.path, 'etc/passwd'), 'utf8');
  await runScenario(root, 'users-order');
  assert.equal(readFileSync(join(root.path, 'etc/passwd'), 'utf8'), first);
  // The accounts are removed and the homes stay, so that their owners get the same ids.
  writeFileSync(join(root.path, 'etc/passwd'), PASSWD);
  await runScenario(root, 'user-password');
  assert.match(readFileSync(join(root.path, 'etc/passwd'), 'utf8'), /\nfoo:x:1002:1002:/);
});

test("yip's scenario download writes a file to its path, or by its name into a folder", async () => {
  using root = new TempRoot();
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/fruit.txt' ? 200 : 404;
    response.end('apple');
  });
  const port = await listenOnLoopback(server);
  try {
    const [document] = readScenario('download');
    assert.ok(document);
    const text = Buffer.from(document.content, 'base64').toString();
    const run = (changed: string): Promise<string> =>
      root.open([hookDocument(changed)]).run('before-install', root.reporter);
    await run(text.replaceAll('PORT', String(port)));
    assert.equal(readFileSync(join(root.path, 'srv/fruit.txt'), 'utf8'), 'apple');
    assert.equal(statSync(join(root.path, 'srv/fruit.txt')).mode & 0o7777, 0o640);
    assert.equal(readFileSync(join(root.path, 'srv/deep/named'), 'utf8'), 'apple');
    await assert.rejects(
      run(text.replaceAll('PORT/fruit', `${port}/user-secret`)),
      ({ message }: Error) => /404/.test(message) && !message.includes('user-secret'),
    );
    assert.equal(readFileSync(join(root.path, 'srv/deep/named'), 'utf8'), 'apple');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('every scenario has a test', () => {
  assert.deepEqual(listScenarios().sort(), [...Object.keys(scenarios), 'download'].sort());
});
