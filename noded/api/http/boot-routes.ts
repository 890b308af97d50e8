import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { bootEndpoints } from '#shared/contract/endpoints.ts';
import type { GuestProgress } from '#shared/contract/instance.ts';
import type { GuestReports } from '../../instances/reports/guest-reports.ts';
import { describeLifecycle } from '../../instances/describe-instance.ts';
import type { Lifecycles } from '../../instances/run-lists/lifecycles-contract.ts';
import type { InstanceRunner } from '../../instances/instance-runner.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { Handlers } from './handlers.ts';

/**
 * Least time between two lines, since a guest may report as often as it likes. The first report
 * after a silence is sent at once: clients get a verdict within 50 ms of the guest's request.
 */
const PAUSE_MS = 20;

export interface BootRoutesDependencies {
  readonly instances: Pick<InstanceRepository, 'findByName' | 'expandName'>;
  readonly runner: Pick<InstanceRunner, 'running'>;
  readonly guestReports: Pick<GuestReports, 'report' | 'nextChange'>;
  readonly lifecycles: Pick<Lifecycles, 'explain' | 'nextChange'>;
}

export function bootRoutes(dependencies: BootRoutesDependencies): Handlers<typeof bootEndpoints> {
  return {
    'GET /v1/instances/{name}/boot': async ({ params, signal }) => {
      const name = await dependencies.instances.expandName(params.name);
      return Readable.from(followBoot(name, dependencies, signal));
    },
  };
}

async function* followBoot(
  name: string,
  { instances, runner, guestReports, lifecycles }: BootRoutesDependencies,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let nextLineAtMs = 0;
  while (!signal.aborted) {
    const pauseMs = nextLineAtMs - performance.now();
    if (pauseMs > 0) await sleep(pauseMs);
    const instance = await instances.findByName(name);
    // Subscribes before it reads the state, so that no change is missed.
    const looked = new AbortController();
    const either = AbortSignal.any([signal, looked.signal]);
    const changed = Promise.race([
      guestReports.nextChange(instance.uuid, either),
      lifecycles.nextChange(instance.uuid, either),
    ]).finally(() => looked.abort());
    const isRunning = runner.running(instance.uuid) !== undefined;
    const report = guestReports.report(instance);
    const progress: GuestProgress = {
      isRunning,
      lifecycle: describeLifecycle(lifecycles.explain(instance)),
      readyAtMs: report?.readyAtMs ?? null,
      boot: report?.boot ?? null,
    };
    nextLineAtMs = performance.now() + PAUSE_MS;
    yield `${JSON.stringify(progress)}\n`;
    if (!isRunning) return;
    await changed;
  }
}
