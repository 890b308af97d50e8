type RefusalReason =
  'source' | 'guard' | 'rate' | 'token' | 'connections' | 'malformed' | 'dhcp' | 'service';

/** What the guest side counts; who keeps the numbers is not its business. */
export interface GuestMetrics {
  finished(path: string, status: number, startedAtMs: number): void;
  refused(reason: RefusalReason): void;
}
