import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/opcode.ts';

/**
 * Hypervisor parameters of a machine that works on an instance instead of being it: an appliance,
 * or the instance booted from its installation medium. Pure.
 */
export function installationParameters({
  hvparams,
  installParameters,
}: Pick<InstanceRecord, 'hvparams' | 'installParameters'>): HvParameters {
  return { ...hvparams, ...installParameters };
}
