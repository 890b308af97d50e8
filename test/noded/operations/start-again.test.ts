import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { DEFAULT_AUTOSTART } from '#shared/contract/autostart.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { JobSecrets } from '../../../noded/instances/parameters/job-secrets.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { startAfter, startAgain } from '../../../noded/operations/start-again.ts';
import { instanceRecord } from '../support/records.ts';

const lostSecrets = 'wait' as const;

function secretsOf(...names: string[]): JobSecrets {
  const osParameters = new Map(names.map((name) => [name, new Secret(`value of ${name}`)]));
  return { osParameters, packageUser: undefined, packagePassword: undefined };
}

/** Starts an instance again that a job with these secrets had stopped, and returns the outcome. */
async function startAgainWith(given: JobSecrets, overrides: Partial<InstanceRecord> = {}) {
  let record: InstanceRecord = {
    ...instanceRecord({ osParametersSecret: { a: 'x', b: 'y' } }),
    ...{ adminState: 'down', stoppedByJob: 7, ...overrides },
  };
  const logged: string[] = [];
  const started: { names: string[]; isAborted: boolean }[] = [];
  const dependencies = {
    instances: {
      update: async (_uuid: string, change: (current: InstanceRecord) => InstanceRecord) =>
        (record = change(record)),
    },
    runner: {
      isRunning: () => false,
      start: async (_instance: unknown, { osParameters }: JobSecrets, { signal }: JobContext) =>
        void started.push({ names: [...osParameters.keys()], isAborted: signal.aborted }),
    },
  } as unknown as OperationDependencies;
  const report = { log: (text: string) => void logged.push(text) };
  const context = { jobId: 7, signal: AbortSignal.abort(), report } as unknown as JobContext;
  await startAgain(record.uuid, given, dependencies, context);
  const { adminState, stoppedByJob } = record;
  return { started, logged: logged.join(), state: [adminState, stoppedByJob] };
}

test('a guest that comes back has the secrets that the job was given, and no others', async () => {
  const { started, logged } = await startAgainWith(secretsOf('a', 'b', 'of-the-next'));
  assert.deepEqual(started, [{ names: ['a', 'b'], isAborted: false }]);
  assert.equal(logged, '');
});

test('one that waits for its secrets is not started without them, but wanted up', async () => {
  const autostart = { ...DEFAULT_AUTOSTART, lostSecrets };
  const waiting = await startAgainWith(secretsOf('a'), { autostart });
  assert.deepEqual([waiting.started, waiting.state], [[], ['up', null]]);
  assert.equal(
    waiting.logged,
    "'web1.example.com' is not started without its secrets. Supply them: gnt-instance startup --os-parameters-secret b=@FILE web1.example.com",
  );
  const whole = await startAgainWith(secretsOf('a', 'b'), { autostart });
  assert.equal(whole.started.length, 1);
});

test('a start that fails says what was done before it', async () => {
  const { signal } = new AbortController();
  const refused = async (): Promise<never> => {
    throw new AppError('HOST_PREREQUISITE', 'no such bridge', { details: { link: 'br9' } });
  };
  await assert.rejects(startAfter('the new system is installed', 'web1', refused, signal), {
    code: 'HOST_PREREQUISITE',
    message: "the new system is installed, but 'web1' did not start: no such bridge",
    hint: 'Start it: gnt-instance startup web1',
    details: { link: 'br9' },
  });
  await startAfter('the new system is installed', 'web1', async () => undefined, signal);
});
