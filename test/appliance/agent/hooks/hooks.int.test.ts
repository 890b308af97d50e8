import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstallEvent } from '#shared/contract/install-event.ts';
import { createMask } from '#shared/secret/mask.ts';
import { createReporter } from '../../../../appliance/agent/report/reporter.ts';
import { surroundWithHooks } from '../../../../appliance/agent/stages/hooks.ts';
import { runStages, type Stage } from '../../../../appliance/agent/report/stage.ts';
import { hookDocument, TempRoot } from './support/temp-root.ts';

const chroot = (steps: string): HookDocument =>
  hookDocument(`stages:\n  after-install-chroot:\n${steps.replace(/^/gm, '    ')}`);
const run = (root: TempRoot, steps: string): Promise<string> =>
  root.open([chroot(steps)]).run('after-install-chroot', root.reporter);

const ACTIONS: Readonly<Record<string, string>> = {
  'a file': '- files: [{path: /srv/out/x, content: x}]',
  'a file through a link at its end': '- files: [{path: /srv/file, content: x}]',
  'a directory': '- directories: [{path: /srv/out/x, permissions: 0777}]',
  'the mode of a directory': '- directories: [{path: /srv/out, permissions: 0777}]',
  'a name server': '- dns: {nameservers: [192.0.2.1], path: /srv/out/x}',
  'a host name': '- hostname: x',
  'a setting': '- sysctl: {a.b: 1}',
  'a variable': '- {environment: {A: 1}, environment_file: /srv/out/x}',
  'a user': '- users: {web: {homedir: /srv/out/web}}',
  'a key': '- authorized_keys: {root: [ssh-ed25519 AAAA]}',
  'an override': '- systemctl: {overrides: [{service: a, content: x}]}',
};

for (const [name, steps] of Object.entries(ACTIONS)) {
  for (const kind of ['absolute', 'relative', 'dangling'] as const) {
    test(`${name} stays inside the root when the image has ${kind} links that lead out`, async () => {
      using root = new TempRoot({ '/etc/passwd': 'root:x:0:0::/srv/out:/bin/sh\n' });
      writeFileSync(join(root.outside, 'kept'), 'kept');
      const target = kind === 'relative' ? `../../../../../../..${root.outside}` : root.outside;
      const link = (path: string, to = target): void => symlinkSync(to, join(root.path, path));
      link('srv/out');
      link('srv/file', `${target}/kept`);
      for (const path of ['etc/hostname', 'etc/hosts']) link(path, `${target}/kept`);
      for (const path of ['etc/sysctl.d', 'etc/systemd']) link(path);
      // The links lead to this place inside the root. The step may fail when it is missing.
      const inside = join(root.path, root.outside);
      if (kind === 'dangling') await run(root, steps).catch(() => undefined);
      else {
        mkdirSync(inside, { recursive: true });
        await run(root, steps);
        if (!name.startsWith('the mode')) assert.notDeepEqual(readdirSync(inside), []);
      }
      assert.deepEqual(readdirSync(root.outside), ['kept']);
      assert.equal(readFileSync(join(root.outside, 'kept'), 'utf8'), 'kept');
    });
  }
}

test("commands run in the instance's root with /dev and /proc, and leave no process and no mount", async () => {
  using root = new TempRoot();
  symlinkSync(root.outside, join(root.path, 'proc'));
  mkdirSync(join(root.path, root.outside), { recursive: true });
  await run(
    root,
    `- commands:
    - '[ -c /dev/null ] && [ "$(cat ${root.outside}/1/comm)" = perl ] && echo fine >/srv/log'
    - ls / >>/srv/log
    - setsid sleep 987654 >/dev/null 2>&1 & echo started >>/srv/log`,
  );
  const log = readFileSync(join(root.path, 'srv/log'), 'utf8');
  assert.match(log, /^fine\n/);
  assert.match(log, /\nbin\n[\s\S]*\nsrv\n[\s\S]*started\n$/);
  // Other tests may mount elsewhere meanwhile.
  const mounted = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const places = [root.path, root.outside];
  assert.deepEqual(
    mounted.filter((line) => places.some((place) => line.includes(place))),
    [],
  );
  assert.deepEqual(readdirSync(root.outside), []);
  const commands = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`))
    .map((pid) => readIfThere(`/proc/${pid}/cmdline`));
  assert.ok(!commands.some((command) => command.includes('987654')));
});

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended meanwhile
  }
}

test('a plain password is hashed in /etc/shadow', async () => {
  using root = new TempRoot({ '/etc/passwd': '', '/etc/group': '', '/etc/shadow': '' });
  await run(root, '- users: {web: {passwd: open sesame}}');
  const shadow = readFileSync(join(root.path, 'etc/shadow'), 'utf8');
  assert.match(shadow, /^web:\$6\$[^:]+:/);
  assert.ok(!shadow.includes('sesame'));
});

test('a failure names stage, step, field and position, and shows neither the document nor hidden values', async () => {
  using root = new TempRoot();
  const book = root.open(
    [
      chroot(
        `- name: first
  commands:
    - 'true'
    - echo "$OSP_PASSWORD" >&2; exit 4 # TEXT-OF-THE-HOOK
- commands: [touch /srv/never]`,
      ),
    ],
    { environment: async () => ({ PATH: '/bin', OSP_PASSWORD: 'correct-horse' }) },
  );
  const events: InstallEvent[] = [];
  const printed: string[] = [];
  const reporter = createReporter({
    send: (event) => events.push(event),
    print: (line) => printed.push(line),
    uptimeMs: () => 0,
    mask: createMask(['correct-horse']),
  });
  const stages = surroundWithHooks(book, 'after-install-chroot', []);
  reporter.result(await runStages(stages, [], reporter));
  const last = events.at(-1);
  assert.deepEqual(last?.type === 'result' && last.outcome, {
    status: 'failure',
    stage: 'after-install-chroot',
    code: 'HOOK_FAILED',
    message: "step 'first' of instance/test.yaml: commands 2: exited with status 4\n<redacted>",
    hint: 'Read the whole output: gnt-instance log NAME',
  });
  const everything = JSON.stringify([events, printed]);
  assert.ok(!everything.includes('correct-horse'));
  assert.ok(!everything.includes('TEXT-OF-THE-HOOK'));
  assert.ok(!existsSync(join(root.path, 'srv/never')));
});

const FAILURES: Readonly<Record<string, string>> = {
  'a variable': '- {environment: {A: CANARY}, environment_file: /CANARY}',
  'a file': '- files: [{path: /etc/passwd/CANARY/x, content: CANARY}]',
  'a directory': '- directories: [{path: /etc/passwd/CANARY}]',
  'a name server': '- dns: {nameservers: [192.0.2.1], path: /CANARY}',
  'a download': "- downloads: [{url: 'http://someone:CANARY@127.0.0.1:1/CANARY', path: /x}]",
  'a command': "- commands: ['exit 3 # CANARY']",
};
for (const [name, steps] of Object.entries(FAILURES)) {
  test(`the error of a failing ${name} shows no path and no text of the document`, async () => {
    using root = new TempRoot({ '/etc/passwd': '', '/CANARY/file': '' });
    await assert.rejects(run(root, steps), (error: Error) => {
      assert.match(error.message, /^step 1 of instance\/test\.yaml: /);
      assert.doesNotMatch(error.message, /CANARY/);
      return true;
    });
  });
}

test('steps of an appliance stage write to the appliance and get GNT_TARGET', async () => {
  using root = new TempRoot();
  const book = root.open(
    [
      hookDocument(
        `stages: {before-install: [{files: [{path: /srv/a, content: x}], commands: ['echo "$GNT_TARGET" >/srv/target']}]}`,
      ),
    ],
    { instancePath: '/run/gnt/target' },
  );
  assert.equal(await book.run('before-install', root.reporter), '1 done');
  assert.equal(readFileSync(join(root.path, 'srv/target'), 'utf8'), '/run/gnt/target\n');
});

test('a hook book has the stages of its documents, and a malformed document is an error', () => {
  using root = new TempRoot();
  const documents = [hookDocument('stages: {image.after: [{}], install.post: [{}]}')];
  assert.equal(root.open(documents).has('install.post'), true);
  assert.throws(() => root.open([...documents, hookDocument('stages: [')]), {
    code: 'HOOK_FAILED',
  });
});

test('the built-in stage runs before its hooks and between its before and after hooks, for all documents', async () => {
  using root = new TempRoot();
  const told: string[] = [];
  const builtIn = (name: 'image' | 'grow'): Stage => ({
    name,
    run: async () => {
      told.push(`built-in ${name}`);
      return 'done';
    },
  });
  const step = (name: string): string =>
    `stages: {image.before: [{name: ${name}}], image: [{name: ${name}}], image.after: [{name: ${name}}]}`;
  const book = root.open([
    hookDocument(step('a'), { source: 'cluster' }),
    hookDocument(step('b'), { source: 'os' }),
  ]);
  const stages = surroundWithHooks(book, 'image', [builtIn('image'), builtIn('grow')]);
  const failure = await runStages(stages, [], {
    started: (stage) => told.push(stage),
    finished: () => undefined,
    reporterFor: () => ({ log: (line) => told.push(line), progress: () => undefined }),
  });
  assert.equal(failure, null);
  const both = ["step 'a' of cluster/test.yaml", "step 'b' of os/test.yaml"];
  assert.deepEqual(told, [
    'image.before',
    ...both,
    'image',
    'built-in image',
    ...both,
    'grow',
    'built-in grow',
    'image.after',
    ...both,
  ]);
});

test('stages for success only are skipped after a failure, and cleanup stages run', async () => {
  const ran: string[] = [];
  const stage = (name: Stage['name'], fails = false): Stage => ({
    name,
    run: async () => {
      ran.push(name);
      if (fails) throw new Error('no');
      return '';
    },
  });
  const observer = {
    started: () => undefined,
    finished: () => undefined,
    reporterFor: () => ({ log: () => undefined, progress: () => undefined }),
  };
  const cleanup = [
    stage('unmount'),
    { ...stage('install.post'), isOnlyAfterSuccess: true },
    stage('sync'),
  ];
  await runStages([stage('image', true)], cleanup, observer);
  assert.deepEqual(ran, ['image', 'unmount', 'sync']);
});
