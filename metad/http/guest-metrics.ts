type RefusalReason =
  'source' | 'guard' | 'rate' | 'token' | 'connections' | 'malformed' | 'dhcp' | 'service';

/** What the guest side counts; who keeps the numbers is not its business. */
export interface GuestMetrics {
  /** @param tookMs from the headers to the end of the answer */
  finished(path: string, status: number, tookMs: number): void;
  refused(reason: RefusalReason): void;
}
