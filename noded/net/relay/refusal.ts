import type { HeaderList } from './relay-headers.ts';

export interface RelayRefusal {
  readonly kind: 'refusal';
  readonly status: 400 | 403 | 404 | 405 | 410 | 413 | 429 | 502 | 503 | 504;
  /** Shown to the guest. */
  readonly reason: string;
  readonly headers?: HeaderList;
  /** For the log, not for the guest. */
  readonly cause?: string;
}

export class Refusal extends Error {
  readonly refusal: RelayRefusal;

  constructor(status: RelayRefusal['status'], reason: string, headers: HeaderList = []) {
    super(reason);
    this.refusal = { kind: 'refusal', status, reason, headers };
  }
}
