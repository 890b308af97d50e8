import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab, type ProgramResult } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import { addDefinitions } from './definitions.ts';
import { digestDisks } from './installed.ts';

/** Sleep of a script that must not reach its end. */
export const SCRIPT_MS = 600_000;
export const VICTIM = 'victim.example.com';

export type Victim = Awaited<ReturnType<typeof createVictim>>;

/** Creates a node, which does not run yet, and its one instance whose installations fail. */
export async function createVictim(prefix: string) {
  const lab = await createLab(prefix);
  const image = join(lab.paths.root, 'small.img');
  // A whole-disk ext4: enough for scripts and packages to mount.
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  await addDefinitions(lab, 'hello');
  await writeOs(lab, 'sleeper', `#!/bin/sh\necho sleeping\nexec sleep ${SCRIPT_MS / 1000}\n`);

  const add = async (...options: string[]): Promise<ProgramResult> => {
    return lab.run('gnt-instance', ['add', '--no-start', ...options, VICTIM]);
  };

  const reinstall = async (...options: string[]): Promise<ProgramResult> => {
    return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...options, VICTIM]);
  };

  const info = async (): Promise<InstanceInfo> => {
    const { stdout } = await lab.run('gnt-instance', ['info', '--json', VICTIM]);
    return instanceInfo.parse(JSON.parse(stdout));
  };

  const remove = async (): Promise<void> => {
    const removed = await lab.run('gnt-instance', ['remove', '--force', VICTIM]);
    assert.equal(removed.status, 0, removed.stderr);
    const { stdout } = await run('ip', [
      'netns',
      'exec',
      lab.paths.networkNamespace,
      'ip',
      '-br',
      'link',
    ]);
    assert.doesNotMatch(stdout, /gnt\.com/);
  };

  /**
   * Checks that the failed instance explains itself, does not run, cannot be started, and is
   * removed without remains.
   */
  const assertFailedAndRemove = async (
    result: ProgramResult,
    code: string,
    stage: string | undefined,
    text: RegExp,
  ): Promise<void> => {
    assert.equal(result.status, 1, result.stderr);
    assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
    assert.match(result.stderr, text);
    const shown = await info();
    assert.equal(shown.status, 'install_failed');
    if (stage !== undefined) assert.equal(shown.install?.stage, stage);
    assert.match(result.stderr, new RegExp(shown.install?.stage ?? 'no stage'));
    assert.equal(shown.install?.error?.code, code);
    assert.equal(shown.running, null);
    assert.equal((await lab.run('gnt-instance', ['startup', VICTIM])).status, 2);
    assert.equal((await lab.run('gnt-instance', ['log', VICTIM])).status, 0);
    await remove();
  };

  const digestDisksOf = async () => digestDisks(lab, (await info()).uuid);
  /**
   * Waits until the installation is at a stage. A command instead of a request would take processor
   * time from the machine.
   */
  const untilStage = async (stage: string): Promise<void> => {
    const deadline = Date.now() + SCRIPT_MS;
    while (Date.now() < deadline) {
      const { status, body } = await askSocket(lab.paths.nodedSocket, `/v1/instances/${VICTIM}`);
      if (status === 200) {
        const { install } = instanceInfo.parse(JSON.parse(body));
        if (install?.stage === stage) return;
        assert.notEqual(
          install?.state,
          'failed',
          `failed before ${stage}: ${install?.error?.message ?? ''}`,
        );
      }
      await sleep(100);
    }
    assert.fail(`the installation never came to ${stage}`);
  };

  /**
   * Cancels running jobs and removes the instance, so that a failed assertion does not fail later
   * tests.
   */
  const clear = async (): Promise<void> => {
    const { stdout } = await lab.run('gnt-job', ['list', '--json']);
    for (const { id, status } of jobRecord.array().parse(JSON.parse(stdout || '[]'))) {
      if (!['success', 'error', 'canceled'].includes(status))
        await lab.run('gnt-job', ['cancel', String(id)]);
    }
    await lab.run('gnt-instance', ['remove', '--force', VICTIM]);
  };

  return {
    lab,
    image,
    add,
    reinstall,
    info,
    remove,
    assertFailedAndRemove,
    digestDisks: digestDisksOf,
    untilStage,
    clear,
  };
}

/** Writes an OS definition whose only script runs in the appliance. */
export async function writeOs(lab: Lab, name: string, script: string): Promise<void> {
  const dir = join(lab.paths.osSearchPath[0] ?? '', name);
  await mkdir(join(dir, 'untrusted'), { recursive: true });
  await writeFile(join(dir, 'untrusted/create'), script, { mode: 0o755 });
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), '');
}
