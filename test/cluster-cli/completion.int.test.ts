import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { sampleInstance, sampleJob, sampleOs } from './support/samples.ts';
import { runProgram } from './support/run-program.ts';

const bin = join(import.meta.dirname, '../../node_modules/.bin');
let daemon: DaemonStandIn;

before(async () => {
  daemon = await startDaemonStandIn();
  daemon.instances.push(sampleInstance({ name: 'web1' }), sampleInstance({ name: 'db1' }));
  daemon.operatingSystems.push(sampleOs(), sampleOs({ name: 'noop', variants: [] }));
  daemon.jobs.push(sampleJob({ id: 31 }));
});
after(() => daemon.close());

/** What bash would offer after the line was typed and tab pressed. */
async function completeInBash(line: string): Promise<readonly string[]> {
  const [program = ''] = line.split(' ');
  const { stdout } = await promisify(execFile)(
    'bash',
    [
      '--norc',
      '-c',
      `source <(${program} completion bash); COMP_LINE=$1; COMP_POINT=\${#1}; _${program.replace('-', '_')}; printf '%s\\n' "\${COMPREPLY[@]}"`,
      'bash',
      line,
    ],
    { env: { PATH: `${bin}:${process.env['PATH']}`, GNT_ROOT: daemon.root } },
  );
  return stdout.split('\n').filter((word) => word !== '');
}

const lines: readonly (readonly [string, readonly string[]])[] = [
  ['gnt-instance re', ['reinstall', 'remove', 'rename', 'reboot', 'replace-token', 'receive']],
  ['gnt-instance console ', ['web1', 'db1']],
  ['gnt-instance info web1 d', ['db1']],
  ['gnt-instance add --os-type ', ['debian+bookworm', 'debian+trixie', 'noop']],
  ['gnt-instance add --os-type=deb', ['debian+bookworm', 'debian+trixie']],
  ['gnt-instance add --seed-disk=', ['yes', 'no']],
  ['gnt-instance add -t ', ['file', 'diskless']],
  ['gnt-job watch 3', ['31']],
  ['gnt-node info n', ['node1']],
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

test('the scripts for zsh and fish are printed, another shell is refused', async () => {
  for (const shell of ['zsh', 'fish']) {
    const result = await runProgram('gnt-os', ['completion', shell], { root: daemon.root });
    assert.equal(result.status, 0);
    assert.match(result.stdout, /gnt-os completion-words/);
  }
  const refused = await runProgram('gnt-os', ['completion', 'csh'], { root: daemon.root });
  assert.equal(refused.status, 2);
});

test('the manual page of every program is made of its commands', async () => {
  for (const program of ['gnt-instance', 'gnt-os', 'gnt-cluster', 'gnt-node', 'gnt-job']) {
    const page = await runProgram(program, ['man'], { root: daemon.root });
    assert.match(page.stdout, new RegExp(`^\\.TH ${program.toUpperCase()} 8 `));
    assert.equal(page.stdout.includes('completion'), false);
  }
});
