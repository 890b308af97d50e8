import { z } from 'zod';

/** When the node starts an instance by itself that is configured up and does not run. */
export const autostart = z.strictObject({
  /** After a reboot of the host. */
  boot: z.boolean(),
  /** Those with a lower one are started before; those with the same, at the same time. */
  priority: z.number().int().min(0).max(1000),
  /** Seconds that it is given before the next one is started in its place. */
  delayS: z.number().int().min(0).max(3600),
  /** What becomes of one whose secrets are gone: it starts without them, or waits for them. */
  lostSecrets: z.enum(['start', 'wait']),
  /** How many times in eight hours its machine is started again after it crashed. */
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
