/**
 * A machine with shared disks is paused this part of a lease after the last renewal was asked for.
 * The rest of it is for what was written before and is on its way, and for clocks that run at
 * different rates.
 */
const PAUSE_PART = 2 / 3;
/** It is ended by then: a machine that is paused keeps the locks of its disks. */
const END_PARTS = 2;
/** Renewals in the time until machines are paused. */
const TRIES = 8;

/** Seconds of the clock of /proc/uptime, which counts while a host is suspended. */
export interface LeaseTimes {
  readonly pauseAtS: number;
  readonly endAtS: number;
}

/**
 * Until when a node may write. Pure.
 * @param askedAtS when the renewal was sent, not when it was answered: who looks from outside may
 * have seen it as early as that
 */
export function planTimes(askedAtS: number, ttlMs: number): LeaseTimes {
  const ttlS = ttlMs / 1000;
  return {
    pauseAtS: Math.floor(askedAtS + ttlS * PAUSE_PART),
    endAtS: Math.floor(askedAtS + ttlS * END_PARTS),
  };
}

/** How often a node renews its lease. Pure. */
export function planInterval(ttlMs: number): number {
  return (ttlMs * PAUSE_PART) / TRIES;
}

/** The lease as the script that pauses reads it; with the boot, whose uptimes alone count. */
export function formatLease(bootId: string, { pauseAtS, endAtS }: LeaseTimes): string {
  return `${bootId} ${pauseAtS} ${endAtS}\n`;
}

/** A lease as another node sees it: since when, on its own clock, it has not been renewed. */
export interface Observation {
  readonly renewals: number | null;
  readonly sinceMs: number;
}

/**
 * What is known of a lease after one more look. No clock of the node that has it counts. Pure.
 * @param renewals null: there is none
 */
export function observe(
  before: Observation | undefined,
  renewals: number | null,
  nowMs: number,
): Observation {
  return before?.renewals === renewals ? before : { renewals, sinceMs: nowMs };
}

/** Pure. @returns 0 or less: it has run out, and nothing of the node writes */
export function leftMs({ sinceMs }: Observation, ttlMs: number, nowMs: number): number {
  return sinceMs + ttlMs - nowMs;
}
