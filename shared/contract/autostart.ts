import { z } from 'zod';

/** When the node starts an instance that is configured up and does not run. */
export const autostart = z.strictObject({
  /** Start after a reboot of the host. */
  boot: z.boolean(),
  /** Lower priorities start earlier, equal ones at the same time. */
  priority: z.number().int().min(0).max(1000),
  /** Seconds before the next instance starts. */
  delayS: z.number().int().min(0).max(3600),
  /** Without its secrets, the instance starts anyway or waits for them. */
  lostSecrets: z.enum(['start', 'wait']),
  /** Restarts after crashes of the QEMU process, in eight hours. */
  restarts: z.number().int().min(0).max(100),
});
export type Autostart = z.infer<typeof autostart>;
export const autostartChanges = autostart.partial();

export const DEFAULT_AUTOSTART: Autostart = {
  boot: true,
  priority: 100,
  delayS: 0,
  lostSecrets: 'start',
  restarts: 0,
};
