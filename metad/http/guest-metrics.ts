type RefusalReason =
  | 'source'
  | 'guard'
  | 'rate'
  | 'token'
  | 'connections'
  /** More outstanding requests than a guest may have. */
  | 'unanswered'
  /** A connection during the exclusion of a guest that exceeded its limits. */
  | 'kept-out'
  | 'malformed'
  | 'dhcp'
  /** A datagram that is too long, or that exceeds the limit of a silent service. */
  | 'datagram'
  | 'service';

/** Counters of the guest side. */
export interface GuestMetrics {
  /** @param tookMs from the headers to the end of the answer */
  finished(path: string, status: number, tookMs: number): void;
  refused(reason: RefusalReason): void;
}
