import type { HostScript } from './choose-scripts.ts';

/**
 * Runs a host script while the appliance's script runs. Its failure also aborts the appliance's
 * run, with the script's error as the reason.
 *
 * INVARIANT: the script does not run after `abandon`.
 */
export class AlongsideScript {
  readonly #script: HostScript | null;
  readonly #run: (script: HostScript, signal: AbortSignal) => Promise<string>;
  readonly #controller = new AbortController();
  /** Aborts with the job, by the script's failure, or by `abandon`. */
  readonly signal: AbortSignal;
  #running: Promise<unknown> | undefined;

  constructor(
    script: HostScript | null,
    jobSignal: AbortSignal,
    run: (script: HostScript, signal: AbortSignal) => Promise<string>,
  ) {
    this.#script = script;
    this.#run = run;
    this.signal = AbortSignal.any([jobSignal, this.#controller.signal]);
  }

  start(): void {
    if (this.#script === null || this.#running !== undefined) return;
    this.#running = this.#run(this.#script, this.signal).catch((error: unknown) => {
      this.#controller.abort(error);
      throw error;
    });
    // `signal` and `finish` report the failure.
    this.#running.catch(() => undefined);
  }

  /** Waits for the script. @throws AppError SCRIPT_FAILED */
  async finish(): Promise<void> {
    await this.#running;
  }

  async abandon(): Promise<void> {
    if (this.#running === undefined) return;
    this.#controller.abort();
    await this.#running.catch(() => undefined);
  }
}
