import type { InstallPlan } from '#shared/contract/plan.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import type { HostClient, OsParameters } from './channel/host-client.ts';
import type { HookBook, HooksModule } from './hooks/main.ts';
import { EventSender } from './report/event-sender.ts';
import { createEventSigner } from './report/event-signer.ts';
import { createReporter } from './report/reporter.ts';
import { listHiddenValues } from './scripts/environment.ts';
import { ScriptWorld } from './scripts/script-world.ts';
import { REAL_LOCATIONS } from './disks/disks.ts';
import { createHooksStage, OWN_HOOKS } from './stages/hooks.ts';
import { createLookStages } from './stages/look-stages.ts';
import { createPlanStages } from './stages/plan-stages.ts';
import { runStages, type StageFailure } from './report/stage.ts';

/** Time limit for reporting the result; the host has its own, longer deadline. */
const RESULT_TIMEOUT_MS = 120_000;
const INTRODUCTION_TIMEOUT_MS = 60_000;

export interface InstallOptions {
  readonly host: HostClient;
  readonly print: (line: string) => void;
  readonly uptimeMs: () => number;
  /** Start of the appliance's first process, and of the agent. */
  readonly userSpaceAtMs: number | null;
  readonly agentStartedAtMs: number;
  readonly agentVersion: string;
  readonly loadHooks: () => HooksModule;
}

/**
 * Fetches and executes the plan, and reports to the host. Resolves when the host has acknowledged
 * the result, or the time limit has passed.
 */
export async function install(options: InstallOptions): Promise<void> {
  const { host, print, uptimeMs } = options;
  const signer = createEventSigner();
  const sender = new EventSender({
    sign: signer.sign,
    post: (batch) => host.postEvents(batch),
    complain: print,
  });
  // Grows when the parameters arrive; before that the agent knows no secret.
  let mask: (text: string) => string = (text) => text;
  const reporter = createReporter({
    send: (event) => sender.send(event),
    print,
    uptimeMs,
    mask: (text) => mask(text),
  });
  let fetched: OsParameters | undefined;
  const parameters = async (): Promise<OsParameters> => {
    fetched ??= await host.fetchOsParameters();
    mask = createMask(listHiddenValues(fetched));
    return fetched;
  };

  sender.send({
    type: 'agent-started',
    atMs: options.agentStartedAtMs,
    userSpaceAtMs: options.userSpaceAtMs,
    agentVersion: options.agentVersion,
    key: signer.keyHex,
  });
  let dumpBytes: readonly number[] | undefined;
  const failure = await carryOut(host, async (plan) => {
    await introduce(sender);
    let hooks: HookBook | null = null;
    const world = new ScriptWorld();
    const opening = createHooksStage({
      plan,
      host,
      signPath: signer.signPath,
      parameters,
      world,
      load: options.loadHooks,
      ownFolder: OWN_HOOKS,
      onOpened: (book) => (hooks = book),
    });
    const failed = await runStages(opening, [], reporter);
    if (failed) return failed;
    const at = REAL_LOCATIONS;
    const onDumped = (bytes: readonly number[]): void => void (dumpBytes = bytes);
    const createStages = plan.isLook === true ? createLookStages : createPlanStages;
    const { stages, cleanup } = createStages({
      plan,
      host,
      at,
      parameters,
      world,
      hooks,
      onDumped,
    });
    return await runStages(stages, cleanup, reporter);
  });
  reporter.result(failure, dumpBytes);
  const isAcknowledged = await sender.flush(RESULT_TIMEOUT_MS);
  if (sender.droppedEvents > 0) print(`${sender.droppedEvents} log lines were dropped`);
  print(isAcknowledged ? 'the host received the result' : 'the host did not accept the result');
}

async function carryOut(
  host: HostClient,
  work: (plan: InstallPlan) => Promise<StageFailure | null>,
): Promise<StageFailure | null> {
  try {
    return await work(await host.fetchPlan());
  } catch (error) {
    return { stage: 'boot-appliance', error };
  }
}

/**
 * Waits until the host has the key. Afterwards untrusted images are parsed and scripts run, and the
 * host would accept the first key that it receives.
 * @throws AppError METAD_UNAVAILABLE
 */
async function introduce(sender: EventSender): Promise<void> {
  const hasArrived = await sender.flush(INTRODUCTION_TIMEOUT_MS);
  if (hasArrived && sender.refusedEvents === 0) return;
  throw new AppError(
    'METAD_UNAVAILABLE',
    'the host did not accept the first event, which carries the key',
    {
      hint: "Rebuild the appliance, its version may differ from the node's: gnt-appliance build",
    },
  );
}
