import type { HostScript } from './choose-scripts.ts';

/**
 * A host script that runs while the appliance's does. When it fails, the appliance's run is ended
 * too, with its error as the reason.
 *
 * INVARIANT: after `abandon`, it does not run.
 */
export class AlongsideScript {
  readonly #script: HostScript | null;
  readonly #run: (script: HostScript, signal: AbortSignal) => Promise<string>;
  readonly #controller = new AbortController();
  /** It is aborted with the job, by the script's failure, or by `abandon`. */
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
    // Its failure is told through the signal meanwhile, and by `finish`.
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
