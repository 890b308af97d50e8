import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach } from 'node:test';
import type { InstallEvent, InstallReport } from '#shared/contract/install-event.ts';
import type { StageTiming } from '#shared/contract/instance.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { signEvent } from '#shared/secret/event-signature.ts';
import { createMask } from '#shared/secret/mask.ts';
import { followAppliance } from '../../../noded/provision/appliance/follow-appliance.ts';
import { InstallLog } from '../../../noded/host/install-log.ts';
import { FakeMachine } from './fake-machine.ts';
import { ManualClock } from './manual-clock.ts';

const installId = '11111111-2222-4333-8444-555555555555';
export const success: InstallEvent = { type: 'result', atMs: 9, outcome: { status: 'success' } };
export const KEY = 'ab'.repeat(32);
export const agentStarted = {
  type: 'agent-started',
  atMs: 1500,
  userSpaceAtMs: 900,
  agentVersion: '1',
  key: KEY,
} satisfies InstallEvent;
export const finished = (stage: InstallStage, atMs = 5): InstallEvent => ({
  type: 'stage-finished',
  atMs,
  stage,
  summary: 'done',
});
/** Stages of every plan. */
export const everyPlan: readonly InstallStage[] = ['wait-disks', 'unmount', 'sync'];
/** Nothing but disks to wait for. */
const emptyPlan: InstallPlan = {
  version: 1,
  installId,
  instance: 'web1.example.com',
  disks: [],
  image: null,
  scripts: null,
  personalization: null,
};
export const failure = (code: string, message = 'it broke'): InstallEvent => ({
  type: 'result',
  atMs: 9,
  outcome: { status: 'failure', stage: 'os-scripts', code, message, hint: 'look' },
});

export interface PlayedAppliances {
  /** That of this test's runs, which masks `hunter2!`. */
  readonly log: InstallLog;
  readonly follow: (options?: FollowOptions) => PlayedAppliance;
}

interface FollowOptions {
  readonly signal?: AbortSignal;
  readonly plan?: Partial<InstallPlan>;
}

export type PlayedAppliance = ReturnType<typeof followPlayed>;

/** Each test of a file has a log of its own. */
export function playAppliances(): PlayedAppliances {
  let dir = '';
  let logs = 0;
  let log: InstallLog;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gnt-appliance-run-'));
  });
  after(() => rm(dir, { recursive: true, force: true }));
  beforeEach(async () => {
    logs += 1;
    log = await InstallLog.create(join(dir, `log-${logs}`), createMask(['hunter2!']));
  });
  afterEach(() => log.close());
  return {
    get log() {
      return log;
    },
    follow: (options = {}) => followPlayed(log, options),
  };
}

/** Follows a run in which the test plays the agent and all other writers of the guest. */
function followPlayed(log: InstallLog, options: FollowOptions) {
  const machine = new FakeMachine();
  const clock = new ManualClock();
  const reported: string[] = [];
  const stages: InstallStage[] = [];
  const keys: string[] = [];
  const timings: StageTiming[] = [];
  let listener: ((event: MetadEvent['event']) => void) | undefined;
  const running = followAppliance({
    plan: { ...emptyPlan, ...options.plan },
    machine,
    log,
    clock,
    bootTimeoutMs: 120_000,
    context: {
      jobId: 1,
      signal: options.signal ?? new AbortController().signal,
      report: {
        log: (message) => reported.push(message),
        waits: () => undefined,
        stageStarted: (stage) => reported.push(`started ${stage}`),
        stageFinished: (stage, _durationMs, summary) =>
          reported.push(`finished ${stage} ${summary}`),
        progress: (activity, done) => reported.push(`progress ${activity} ${done}`),
        output: (stage, line) => reported.push(`output ${stage} ${line}`),
        scriptOutput: (text) => reported.push(`script output ${text}`),
      },
    },
    subscribe: (subscriber) => {
      listener = subscriber;
      return () => (listener = undefined);
    },
    onAgentKey: (keyHex) => keys.push(keyHex),
    onStage: (stage) => stages.push(stage),
    onTiming: (timing) => timings.push(timing),
  });
  const post = (event: InstallReport, id = installId): void =>
    listener?.({ type: 'install', installId: id, event });
  let sequence = 0;
  const sign = (event: InstallEvent, key = KEY): InstallReport => {
    sequence += 1;
    const body = JSON.stringify(event);
    return { sequence, body, mac: signEvent(key, sequence, body) };
  };
  const say = (event: InstallEvent, id = installId): void => {
    if (sequence === 0 && event !== agentStarted) post(sign(agentStarted), id);
    post(sign(event), id);
  };
  /** Success, and before it the end of every stage that the plan wants beside those given here. */
  const succeed = (...stages: InstallStage[]): void => {
    for (const stage of ['wait-disks', ...stages, 'unmount', 'sync'] as const) say(finished(stage));
    say(success);
  };
  return {
    post,
    sign,
    succeed,
    lose: (lost: number) => listener?.({ type: 'gap', lost }),
    machine,
    clock,
    running,
    keys,
    say,
    reported,
    stages,
    timings,
    isListening: () => listener !== undefined,
  };
}

/** Lets everything that is due run, without the clock. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

export async function rejected(promise: Promise<unknown>): Promise<AppError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AppError, `expected an AppError, not ${String(error)}`);
  return error;
}
