import type { OsSettings } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import type { Opcode, OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext, JobHandler } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord } from '../support/records.ts';

export const JOB = 7;

type Answers = Readonly<Record<string, (...given: never[]) => unknown>>;
/** Members of a component that a test answers, by component. */
export type World = Readonly<Record<string, Answers>>;

/** Questions, which are no step of an operation. */
const QUESTIONS =
  /^(?:isRunning|running|find.*|load.*|list.*|flagsOf|names|freeBytes|pathOf|contentOf)$/;

const OS_SETTINGS: Omit<OsSettings, 'name'> = {
  ...{ schema: 1, trusted: false, hidden: false, blacklisted: false, safeInstall: 'optional' },
  ...{ osParameters: {}, osParametersPrivate: {} },
};

interface Committing {
  readonly commit: () => Promise<unknown>;
}
const commits = (_: unknown, __: unknown, { commit }: Committing): Promise<unknown> => commit();

/**
 * Creates a node with one instance. Every component records each call as `component.method`, in
 * order, and answers with undefined unless `world` has another answer.
 * @param stored the record of the instance
 */
export function createOperationLab(stored: InstanceRecord, world: World = {}) {
  let record: InstanceRecord | null = stored;
  const steps: string[] = [];
  const lines: string[] = [];
  const component = (name: string, own: Answers = {}): unknown => {
    const answers: Answers = { ...own, ...world[name] };
    return new Proxy(answers, {
      get: (_, method) => {
        // A component that is awaited or printed is no call.
        if (typeof method === 'symbol' || method === 'then') return undefined;
        return (...given: never[]): unknown => {
          if (!QUESTIONS.test(method)) steps.push(`${name}.${method}`);
          const answer = answers[method];
          return answer === undefined ? Promise.resolve(undefined) : answer(...given);
        };
      },
    });
  };
  const known: Readonly<Record<string, unknown>> = {
    nodeName: stored.primaryNode,
    owns: (node: string) => node === stored.primaryNode,
    clock: new ManualClock(5000),
    logDir: '/nonexistent',
    instances: component('instances', {
      findByName: async (name: string) => {
        if (record?.name === name) return record;
        throw new AppError('INSTANCE_NOT_FOUND', `no instance '${name}'`);
      },
      findByUuid: async (uuid: string) => (record?.uuid === uuid ? record : undefined),
      update: async (_: string, change: (current: InstanceRecord) => InstanceRecord) =>
        (record = change(record ?? stored)),
      rename: async (_: string, name: string) => (record = { ...(record ?? stored), name }),
      create: async (planned: InstanceRecord) =>
        (record = { ...planned, channel: stored.channel, serialNo: 1 }),
      remove: async () => {
        record = null;
      },
    }),
    clusters: component('clusters', {
      load: async () => clusterRecord,
      listNetworks: async () => [],
      loadOs: async (name: string) => ({ ...OS_SETTINGS, name }),
    }),
    nodes: component('nodes', { flagsOf: async () => NO_FLAGS }),
    runner: component('runner', { isRunning: () => false, running: () => undefined }),
    disks: component('disks', {
      copy: commits,
      change: async (_: unknown, __: unknown, commit: () => Promise<unknown>) => commit(),
    }),
    snapshots: component('snapshots', {
      restore: commits,
      remove: async (_: unknown, __: unknown, commit: () => Promise<unknown>) => commit(),
      take: async (...given: [unknown, unknown, Committing]) => {
        await commits(...given);
        return { stillMs: 0 };
      },
    }),
  };
  // Each operation names the components that it uses.
  const dependencies = new Proxy(known, {
    get: (_, name) => (typeof name === 'symbol' ? undefined : (known[name] ?? component(name))),
  }) as unknown as OperationDependencies;
  const report = {
    log: (line: string, level?: string) => void lines.push(level ? `${level}: ${line}` : line),
    progress: () => undefined,
  };
  const context = { jobId: JOB, signal: new AbortController().signal, report };
  return {
    ...{ steps, lines, dependencies },
    /** Returns the record of the instance in the store; null: it was removed. */
    record: () => record,
    /** Prepares an operation, forgets the steps until then, and executes it. */
    run: async (
      createHandler: (dependencies: OperationDependencies) => unknown,
      input: OpcodeInput,
    ): Promise<unknown> => {
      // The handler is the one of the opcode.
      const handler = createHandler(dependencies) as JobHandler<Opcode>;
      const execute = await handler.prepare(parseOpcode(input), context.signal);
      steps.push('execute');
      return execute(context as unknown as JobContext);
    },
  };
}
