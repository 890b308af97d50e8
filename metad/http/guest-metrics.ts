type RefusalReason =
  | 'source'
  | 'guard'
  | 'rate'
  | 'token'
  | 'connections'
  /** More requests under way than a guest may have. */
  | 'unanswered'
  /** A connection while the guest is kept out, since it went beyond what it may have. */
  | 'kept-out'
  | 'malformed'
  | 'dhcp'
  /** A datagram that is too long, or one too many for a service that does not answer. */
  | 'datagram'
  | 'service';

/** What the guest side counts; who keeps the numbers is not its business. */
export interface GuestMetrics {
  /** @param tookMs from the headers to the end of the answer */
  finished(path: string, status: number, tookMs: number): void;
  refused(reason: RefusalReason): void;
}
