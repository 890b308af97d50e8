import { hypervisorParameters } from '#shared/contract/parameter-keys.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { LifecycleTerms } from './plan-lifecycle.ts';

const DECOMMISSION_TIMEOUT_S = hypervisorParameters.decommission_timeout.default;
/** Maximum of `-H decommission_timeout` without a tag, and with each tag. */
const MAX_TIMEOUT_S = 50 * 60;
const MAX_TIMEOUTS_S: ReadonlyMap<string, number> = new Map([
  ['rs_decommissioning:delay=medium', 110 * 60],
  ['rs_decommissioning:delay=long', 230 * 60],
]);
/** Limit of the boot list with the tag `rs_launch:type=auto`. */
const BOOT_TIMEOUT_S = 45 * 60;

/** Returns the guest's limits by hypervisor parameter and tags. */
export function lifecycleTermsOf({
  hvparams,
  tags,
}: Pick<InstanceRecord, 'hvparams' | 'tags'>): Pick<
  LifecycleTerms,
  'decommissionTimeoutS' | 'bootTimeoutS'
> {
  const maxS = Math.max(MAX_TIMEOUT_S, ...tags.map((tag) => MAX_TIMEOUTS_S.get(tag) ?? 0));
  return {
    decommissionTimeoutS: Math.min(hvparams.decommission_timeout ?? DECOMMISSION_TIMEOUT_S, maxS),
    bootTimeoutS: tags.includes('rs_launch:type=auto') ? BOOT_TIMEOUT_S : null,
  };
}
