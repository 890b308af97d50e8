import { open } from 'node:fs/promises';
import { messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { type Check, failure, ok, warning } from './check.ts';

export const checkTun: Check = async () => {
  const check = 'tun';
  try {
    await using device = await open('/dev/net/tun', 'r+');
    const { mode } = await device.stat();
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    return ok(
      check,
      `/dev/net/tun opens (mode ${octal}; any mode works, QEMU gets open descriptors)`,
    );
  } catch (error) {
    return failure(
      check,
      `/dev/net/tun cannot be opened: ${messageOf(error)}`,
      systemCodeOf(error) === 'ENOENT'
        ? 'modprobe tun'
        : 'Run noded as root, outside of a container.',
    );
  }
};

export const checkAccelerator: Check = async ({ host }) => {
  const check = 'kvm';
  try {
    const { accelerator, reason } = await host.accelerators.probe();
    if (accelerator === 'kvm') return ok(check, reason);
    return warning(
      check,
      `instances run under emulation (TCG), which is slow: ${reason}`,
      'Enable virtualization in the firmware, or nested virtualization on the host of this machine.',
    );
  } catch (error) {
    return failure(check, messageOf(error), 'apt-get install qemu-system-x86');
  }
};
