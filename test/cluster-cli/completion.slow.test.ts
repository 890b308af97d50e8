import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { sampleJob } from '../lab/sample-job.ts';
import { sampleInstance, sampleOs } from './support/samples.ts';
import { runInProcess } from './support/run-in-process.ts';

const bin = join(import.meta.dirname, '../../node_modules/.bin');
let daemon: DaemonStandIn;

before(async () => {
  daemon = await startDaemonStandIn();
  daemon.instances.push(sampleInstance({ name: 'web1' }), sampleInstance({ name: 'db1' }));
  daemon.operatingSystems.push(sampleOs(), sampleOs({ name: 'noop', variants: [] }));
  daemon.jobs.push(sampleJob({ id: 31 }));
});
after(() => daemon.close());

/** Returns bash's candidates after a line and a tab. */
async function completeInBash(line: string): Promise<readonly string[]> {
  const [program = ''] = line.split(' ');
  const script = await runInProcess(program, ['completion', 'bash'], { root: daemon.root });
  const { stdout } = await promisify(execFile)(
    'bash',
    [
      '--norc',
      '-c',
      `${script.stdout}\nCOMP_LINE=$1; COMP_POINT=\${#1}; _${program.replace('-', '_')}; printf '%s\\n' "\${COMPREPLY[@]}"`,
      'bash',
      line,
    ],
    { env: { PATH: `${bin}:${process.env['PATH']}`, GNT_ROOT: daemon.root } },
  );
  return stdout.split('\n').filter((word) => word !== '');
}

const lines: readonly (readonly [string, readonly string[]])[] = [
  [
    'gnt-instance re',
    [
      'reinstall',
      'reboot',
      'remove',
      'rename',
      'remove-tags',
      'replace-token',
      'receive',
      'restore-snapshot',
      'remove-snapshot',
    ],
  ],
  ['gnt-instance console ', ['web1', 'db1']],
  ['gnt-instance info web1 d', ['db1']],
  ['gnt-instance add --os-type ', ['debian+bookworm', 'debian+trixie', 'noop']],
  ['gnt-instance add --os-type=deb', ['debian+bookworm', 'debian+trixie']],
  ['gnt-instance add --seed-disk=', ['yes', 'no']],
  ['gnt-instance add -t ', ['file', 'sharedfile', 'plain', 'zfs', 'diskless']],
  ['gnt-job watch 3', ['31']],
  ['gnt-node info n', ['node1']],
  // bash breaks words at : and =, and replaces only the text after the break.
  ['gnt-instance add --net 0:mo', ['mode=']],
  ['gnt-instance add --net 0:link=br0,mode=', ['bridged', 'user']],
  ['gnt-instance modify -H boot', ['boot_order=', 'boot_report=']],
];
for (const [line, expected] of lines) {
  test(`bash completes '${line}'`, async () => {
    assert.deepEqual(await completeInBash(line), expected);
  });
}

test('bash completes files after an option that names one, also behind @', async () => {
  const folder = join(import.meta.dirname, 'support');
  for (const start of ['--user-data ', '--user-data=', '--os-parameters-secret pw=x --ssh-key ']) {
    const found = await completeInBash(`gnt-instance add ${start}${folder}/run-pro`);
    assert.deepEqual(found, [`${folder}/run-program.ts`]);
  }
  const behindAt = await completeInBash(
    `gnt-instance add --personalization-password @${folder}/run-pro`,
  );
  assert.deepEqual(behindAt, [`@${folder}/run-program.ts`]);
});

const support = join(import.meta.dirname, 'support');
/** A line, its candidates, and the line after the tab if it changes. */
const otherShells: readonly (readonly [string, readonly string[], string?])[] = [
  ['gnt-instance console w', ['web1'], 'gnt-instance console web1 '],
  ['gnt-instance rei', ['reinstall'], 'gnt-instance reinstall '],
  ['gnt-instance add --os-type ', ['debian+bookworm', 'debian+trixie', 'noop']],
  [
    'gnt-instance add --os-im',
    ['--os-image', '--os-image-checksum', '--os-image-grow'],
    'gnt-instance add --os-image',
  ],
  [
    `gnt-instance add --user-data=${support}/run-pro`,
    [`--user-data=${support}/run-program.ts`],
    `gnt-instance add --user-data=${support}/run-program.ts `,
  ],
  [
    `gnt-instance add --ssh-key @${support}/run-pro`,
    [`@${support}/run-program.ts`],
    `gnt-instance add --ssh-key @${support}/run-program.ts `,
  ],
  ['gnt-job watch 3', ['31'], 'gnt-job watch 31 '],
];

/**
 * Runs a shell with gnt-instance's completion installed as by the package. The completion of
 * gnt-job is sourced.
 */
async function runShell(
  shell: 'zsh' | 'fish',
  fileName: string,
  args: readonly string[],
): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), `gnt-${shell}-`));
  try {
    const script = await runInProcess('gnt-instance', ['completion', shell], { root: daemon.root });
    await writeFile(join(home, fileName), script.stdout);
    const { stdout } = await promisify(execFile)(shell, args, {
      env: {
        PATH: `${bin}:${process.env['PATH']}`,
        GNT_ROOT: daemon.root,
        HOME: home,
        COMPLETIONS: home,
        LANG: 'C.UTF-8',
        TERM: 'xterm',
      },
      timeout: 240_000,
    });
    return stdout;
  } finally {
    await rm(home, { recursive: true });
  }
}

const skipWithout = (shell: string): string | false =>
  existsSync(`/usr/bin/${shell}`) ? false : `${shell} is not installed: apt install ${shell}`;

test('zsh completes by tab, from the first time', { skip: skipWithout('zsh') }, async () => {
  const typed = otherShells.map(([line]) => line);
  const driver = join(support, 'complete-in-zsh.zsh');
  const answers = (await runShell('zsh', '_gnt-instance', ['-f', driver, ...typed])).split(/^== /m);
  for (const [index, [line, offered, completed]] of otherShells.entries()) {
    const answer = (answers[index + 1] ?? '').split('\n');
    const words = answer.filter((each) => each.startsWith('offered ')).map((each) => each.slice(8));
    // zsh prints the folder separately.
    const names = offered.map((word) => word.replace(`${support}/`, ''));
    assert.deepEqual(words.toSorted(), names, line);
    if (completed) assert.ok(answer.includes(`line ${completed}`), answer.join('\n'));
  }
});

test('fish completes, descriptions beside', { skip: skipWithout('fish') }, async () => {
  const commands = [
    'set fish_complete_path $COMPLETIONS',
    'gnt-job completion fish | source',
    'for line in $argv; echo "== $line"; complete -C "$line"; end',
  ];
  const args = ['--no-config', '-c', commands.join('\n'), ...otherShells.map(([line]) => line)];
  const answers = (await runShell('fish', 'gnt-instance.fish', args)).split(/^== /m);
  for (const [index, [line, offered]] of otherShells.entries()) {
    const words = (answers[index + 1] ?? '').trimEnd().split('\n').slice(1);
    assert.deepEqual(
      words.map((word) => word.split('\t')[0]),
      offered,
      line,
    );
  }
  assert.match(answers[2] ?? '', /^reinstall\tInstall an instance again/m);
});

test('a shell that is not known is refused', async () => {
  const refused = await runInProcess('gnt-os', ['completion', 'csh'], { root: daemon.root });
  assert.equal(refused.status, 2);
});

test('the manual page of every program is made of its commands', async () => {
  const command = await runInProcess('gnt-os', ['man', 'trust'], { root: daemon.root });
  assert.match(command.stdout, /^\.TH GNT-OS-TRUST 8 /);
  for (const program of ['gnt-instance', 'gnt-os', 'gnt-cluster', 'gnt-node', 'gnt-job']) {
    const page = await runInProcess(program, ['man'], { root: daemon.root });
    assert.match(page.stdout, new RegExp(`^\\.TH ${program.toUpperCase()} 8 `));
    assert.equal(page.stdout.includes('completion\\-words'), false);
  }
});
