import { randomBytes } from 'node:crypto';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { RapiUser } from '../rapi/users-file.ts';

/** 256 bits: not guessable, and no two are equal. */
const TOKEN_BYTES = 32;
const MAX_SESSIONS = 1000;
/** Limit for each user: browsers may close without a logout. */
const MAX_USER_SESSIONS = 32;

export interface SessionLimits {
  /** Milliseconds without a request of the user. */
  readonly idleMs: number;
  /** Milliseconds since the login. */
  readonly totalMs: number;
}

export interface Session {
  /** Content of the cookie. */
  readonly id: string;
  /** Required in a header of each change, where only a script of the page can put it. */
  readonly csrf: string;
  readonly user: RapiUser;
  /** Aborted at the end of the session. */
  readonly signal: AbortSignal;
}

interface KeptSession extends Session {
  readonly controller: AbortController;
  readonly begunAtMs: number;
  usedAtMs: number;
}

export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Holds the sessions of a web server in memory. */
export class Sessions {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #limits: SessionLimits | null;
  readonly #sessions = new Map<string, KeptSession>();

  /** @param limits null: sessions last as long as the server */
  constructor(clock: Pick<Clock, 'monotonicMs'>, limits: SessionLimits | null) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** @throws AppError TOO_MANY_LOGINS */
  begin(user: RapiUser): Session {
    this.endExpired();
    const own = [...this.#sessions.values()].filter((each) => each.user.name === user.name);
    if (own.length >= MAX_USER_SESSIONS) this.end(leastRecent(own));
    if (this.#sessions.size >= MAX_SESSIONS) {
      throw new AppError('TOO_MANY_LOGINS', `${MAX_SESSIONS} users are logged in`, {
        hint: 'Try again later.',
      });
    }
    const controller = new AbortController();
    const nowMs = this.#clock.monotonicMs();
    const session: KeptSession = {
      id: newToken(),
      csrf: newToken(),
      user,
      controller,
      signal: controller.signal,
      begunAtMs: nowMs,
      usedAtMs: nowMs,
    };
    this.#sessions.set(session.id, session);
    return session;
  }

  find(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || !this.#isExpired(session)) return session;
    this.end(session);
    return undefined;
  }

  /** Records a request of the user, which prolongs the session. */
  use(session: Session): void {
    const kept = this.#sessions.get(session.id);
    if (kept !== undefined) kept.usedAtMs = this.#clock.monotonicMs();
  }

  end(session: Session): void {
    const kept = this.#sessions.get(session.id);
    this.#sessions.delete(session.id);
    kept?.controller.abort(new AppError('LOGIN_REQUIRED', 'the session has ended'));
  }

  /** Ends expired sessions and sessions of users without their former rights. */
  async endUnless(isCurrent: (session: Session) => Promise<boolean>): Promise<void> {
    this.endExpired();
    for (const session of [...this.#sessions.values()])
      if (!(await isCurrent(session))) this.end(session);
  }

  endExpired(): void {
    for (const session of this.#sessions.values()) if (this.#isExpired(session)) this.end(session);
  }

  endAll(): void {
    for (const session of this.#sessions.values()) this.end(session);
  }

  #isExpired({ begunAtMs, usedAtMs }: KeptSession): boolean {
    if (this.#limits === null) return false;
    const nowMs = this.#clock.monotonicMs();
    return nowMs - usedAtMs >= this.#limits.idleMs || nowMs - begunAtMs >= this.#limits.totalMs;
  }
}

function leastRecent(sessions: readonly [KeptSession, ...KeptSession[]] | KeptSession[]): Session {
  return sessions.reduce((oldest, each) => (each.usedAtMs < oldest.usedAtMs ? each : oldest));
}
