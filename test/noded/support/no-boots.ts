import type { MachineKeeperDependencies } from '../../../noded/instances/machines/machine-keeper.ts';

/** Of machines that load nothing from their channels. */
export const noBoots: MachineKeeperDependencies['boots'] = {
  settle: () => undefined,
  forget: () => undefined,
};
