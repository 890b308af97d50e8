import type { InstallPlan } from '#shared/contract/plan.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';

/**
 * Returns the stages that an appliance must finish, in this order, before a success counts. Hooks
 * add stages that only the agent knows; these stages follow from the plan. Pure.
 */
export function listRequiredStages(plan: InstallPlan): readonly InstallStage[] {
  const { image, scripts, personalization } = plan;
  const first: readonly InstallStage[] = [
    ...(plan.hooks?.hasDocuments === true ? (['hooks'] as const) : []),
    'wait-disks',
    ...(scripts?.verify === undefined ? [] : (['verify'] as const)),
    ...(image ? (['image'] as const) : []),
  ];
  if (plan.isLook === true) return [...first, ...(personalization ? ['personalize' as const] : [])];
  return [
    ...first,
    ...(image?.grow === true ? (['grow'] as const) : []),
    ...(scripts ? (['os-scripts'] as const) : []),
    ...(personalization ? (['mount', 'personalize'] as const) : []),
    'unmount',
    'sync',
  ];
}

/** @returns the first stage that did not end in its turn, or null. Pure. */
export function findMissingStage(
  required: readonly InstallStage[],
  finished: readonly InstallStage[],
): InstallStage | null {
  let next = 0;
  for (const stage of finished) if (stage === required[next]) next += 1;
  return required[next] ?? null;
}
