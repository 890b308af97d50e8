import type { DoctorFinding } from '#shared/contract/api.ts';
import {
  BASE_COMMANDS,
  BUILD_COMMANDS,
  findMissing,
  type HostCommands,
} from '#shared/process/host-commands.ts';
import { type Check, ok } from './check.ts';

const NEEDED_COMMANDS = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
  ip: 'iproute2',
  nft: 'nftables',
  setpriv: 'util-linux',
  nsenter: 'util-linux',
  unshare: 'util-linux',
  prlimit: 'util-linux',
  mcopy: 'mtools',
} as const;

export const checkPackages: Check = () => examineCommands('packages', NEEDED_COMMANDS, 'error');

export const checkBuildPackages: Check = () =>
  examineCommands('build-packages', { ...BUILD_COMMANDS, ...BASE_COMMANDS }, 'warning');

export async function examineCommands(
  check: string,
  wanted: HostCommands,
  level: 'error' | 'warning',
): Promise<DoctorFinding> {
  const missing = await findMissing(wanted);
  if (missing === null) return ok(check, `found ${Object.keys(wanted).join(', ')}`);
  return { check, level, message: `missing: ${missing.commands.join(', ')}`, hint: missing.remedy };
}
