/**
 * Share of a lease after which machines with shared disks are paused, from the request for the last
 * renewal. The rest covers writes in flight and clocks that run at different rates.
 */
const PAUSE_PART = 2 / 3;
/**
 * Paused machines are ended after this many lease times, since they keep the locks of their disks.
 */
const END_PARTS = 2;
/** Number of renewals before machines are paused. */
const TRIES = 8;

/** Seconds of the clock of /proc/uptime, which counts while a host is suspended. */
export interface LeaseTimes {
  readonly pauseAtS: number;
  readonly endAtS: number;
}

/**
 * Returns when a node must stop writing. Pure.
 * @param askedAtS when the renewal was sent, not answered: another node may have seen it that early
 */
export function planTimes(askedAtS: number, ttlMs: number): LeaseTimes {
  const ttlS = ttlMs / 1000;
  return {
    pauseAtS: Math.floor(askedAtS + ttlS * PAUSE_PART),
    endAtS: Math.floor(askedAtS + ttlS * END_PARTS),
  };
}

/** Returns the milliseconds between renewals. Pure. */
export function planInterval(ttlMs: number): number {
  return (ttlMs * PAUSE_PART) / TRIES;
}

/**
 * Returns the lease file for the script that pauses. It includes the boot, since uptimes of other
 * boots do not count.
 */
export function formatLease(bootId: string, { pauseAtS, endAtS }: LeaseTimes): string {
  return `${bootId} ${pauseAtS} ${endAtS}\n`;
}

/**
 * Another node's lease: since when, on the clock of this node, it has had this number of renewals.
 */
export interface Observation {
  readonly renewals: number | null;
  readonly sinceMs: number;
}

/**
 * Returns the observation after another look. Clocks of the observed node do not matter. Pure.
 * @param renewals null without a lease
 */
export function observe(
  before: Observation | undefined,
  renewals: number | null,
  nowMs: number,
): Observation {
  return before?.renewals === renewals ? before : { renewals, sinceMs: nowMs };
}

/** Returns the rest of a lease; at 0 or less the node no longer writes. Pure. */
export function leftMs({ sinceMs }: Observation, ttlMs: number, nowMs: number): number {
  return sinceMs + ttlMs - nowMs;
}
