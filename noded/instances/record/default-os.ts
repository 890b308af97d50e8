import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { hasMedium } from '../machines/plan-boot.ts';

/** Sets the cluster's default OS if the request names nothing to install. Pure. */
export function withDefaultOs(
  opcode: OpcodeOf<'INSTANCE_CREATE'>,
  defaultOs: string | undefined,
): OpcodeOf<'INSTANCE_CREATE'> {
  const isChosen =
    opcode.osType !== undefined ||
    opcode.osImage !== undefined ||
    (opcode.bootEnv !== undefined && opcode.bootEnv !== LOCAL_BOOT_ENV) ||
    hasMedium({ installParameters: opcode.installParameters ?? {}, bootEnv: null });
  return isChosen || defaultOs === undefined ? opcode : { ...opcode, osType: defaultOs };
}
