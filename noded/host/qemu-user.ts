import { ensureSystemUser, findGroup, type SystemUser } from './system-user.ts';

export const QEMU_USER = 'gnt-qemu';
const KVM_GROUP = 'kvm';

export interface QemuUser extends SystemUser {
  /** Group of /dev/kvm, where the host has one. */
  readonly kvmGid: number | null;
}

/**
 * The system user that QEMU runs as; made when it is missing.
 * @throws AppError HOST_PREREQUISITE when it cannot be made
 */
export async function ensureQemuUser(): Promise<QemuUser> {
  const user = await ensureSystemUser(QEMU_USER);
  return { ...user, kvmGid: (await findGroup(KVM_GROUP)) ?? null };
}
