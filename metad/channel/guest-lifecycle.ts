import {
  advanceProgress,
  type LifecycleRefusal,
  type ProgressView,
} from '#shared/contract/lifecycle-progress.ts';
import type {
  LifecycleEvent,
  LifecycleProgress,
  ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import { EntryOutput } from './entry-output.ts';

/** An accepted event, and the guest's progress after it. */
export interface TakenEvent {
  readonly event: LifecycleEvent;
  readonly progress: LifecycleProgress;
  /** Whether the event had an effect that the node daemon does not know yet. */
  readonly isNews: boolean;
}

/**
 * Progress of a guest with its run lists, as the guest reports it.
 *
 * INVARIANTS: a batch, which is of one boot, counts as a whole or not at all; progress reported
 * here is newer than that in a view of the same run; the output of one script at a time is held,
 * and bounded; the inputs of a command are known as long as its output can arrive, even if a later
 * view lacks them.
 */
export class GuestLifecycle {
  #view: ViewLifecycle;
  #progress: LifecycleProgress;
  /** Whether no report can be missing between the last known one and the next. */
  #isCertain = false;
  #output: EntryOutput | undefined;
  /** Inputs of commands, by entry. */
  #inputs: ReadonlyMap<string, readonly string[]> = new Map();
  /** Inputs that an earlier metad handed over; their entries are unknown. */
  #taken: readonly string[] = [];
  #hiddenInputs: readonly string[] = [];

  constructor(view: ViewLifecycle) {
    this.#view = view;
    this.#progress = view.progress;
    this.#holdInputs();
  }

  /** Takes over the host's new view. */
  follow(view: ViewLifecycle): void {
    const isSameRun = view.status.run === this.#view.status.run;
    this.#view = view;
    if (!isSameRun) this.#taken = [];
    if (!isSameRun || this.#progress.boot === null) {
      this.#progress = view.progress;
      // The run began here: no other metad can have heard a report of it.
      if (!isSameRun) this.#isCertain = view.progress.boot === null;
      this.#output = undefined;
    }
    this.#holdInputs();
  }

  /** Texts to hide in output: inputs of the wanted, the running and the last command. */
  get hiddenInputs(): readonly string[] {
    return this.#hiddenInputs;
  }

  /** Hides the texts that an earlier metad of this guest hid, until the run ends. */
  takeOver(hiddenInputs: readonly string[]): void {
    this.#taken = hiddenInputs;
    this.#holdInputs();
  }

  #holdInputs(): void {
    const { commandEnv } = this.#view;
    const { command } = progressView(this.#view);
    const { entry: running, last } = this.#progress;
    const held = new Map(
      [...this.#inputs].filter(([entry]) => [command, running, last?.entry].includes(entry)),
    );
    const given = Object.values(commandEnv).flatMap((value) =>
      'text' in value ? [value.text] : [],
    );
    if (command !== null && given.length > 0) held.set(command, given);
    this.#inputs = held;
    const texts = [...new Set([...this.#taken, ...[...held.values()].flat()])];
    // Keep the array while its texts are equal: another array makes new masks.
    if (texts.join('\0') !== this.#hiddenInputs.join('\0')) this.#hiddenInputs = texts;
  }

  get run(): string {
    return this.#view.status.run;
  }

  /**
   * Judges a batch and changes nothing.
   * @returns the first refusal, with the index of its event, or input for `accept`
   */
  judge(
    batch: readonly LifecycleEvent[],
  ): (LifecycleRefusal & { readonly index: number }) | readonly TakenEvent[] {
    const taken: TakenEvent[] = [];
    let progress = this.#progress;
    let isCertain = this.#isCertain;
    const view = progressView(this.#view);
    for (const [index, event] of batch.entries()) {
      // The first of two boots has ended; repeated, it would start again.
      if (event.boot !== batch[0]?.boot)
        return { field: 'boot', refused: 'a batch must contain events of one boot only', index };
      const next = advanceProgress(progress, event, view, isCertain);
      if ('refused' in next) return { ...next, index };
      if (next === progress) continue;
      taken.push({ event, progress: next, isNews: this.#isNews(progress, next) });
      progress = next;
      isCertain = true;
    }
    return taken;
  }

  /** A report is repeated when the host's view shows that it was lost. */
  #isNews(before: LifecycleProgress, after: LifecycleProgress): boolean {
    return after.state !== this.#view.status.state || isChanged(before, after);
  }

  accept({ event, progress }: TakenEvent): void {
    this.#progress = progress;
    this.#isCertain = true;
    if (event.type === 'booting' || event.type === 'started') this.#output = undefined;
    if (this.#inputs.size > 0) this.#holdInputs();
  }

  /**
   * Returns the output of the running script, or of the last one to end.
   * @returns undefined for any other
   */
  outputOf(entry: string): EntryOutput | undefined {
    if (this.#output?.entry === entry) return this.#output;
    const { entry: running, last } = this.#progress;
    if (entry !== running && entry !== last?.entry) return undefined;
    this.#output = new EntryOutput(entry);
    return this.#output;
  }

  heldOutputOf(entry: string): EntryOutput | undefined {
    return this.#output?.entry === entry ? this.#output : undefined;
  }
}

function progressView({ status, lists }: ViewLifecycle): ProgressView {
  const names = (scripts: readonly { readonly name: string }[]): readonly string[] =>
    scripts.map(({ name }) => name);
  return {
    run: status.run,
    boot: names(lists.boot),
    decommission: names(lists.decommission),
    command: status.next?.do === 'run' ? status.next.entry : null,
  };
}

function isChanged(before: LifecycleProgress, after: LifecycleProgress): boolean {
  return JSON.stringify({ ...before, number: 0 }) !== JSON.stringify({ ...after, number: 0 });
}
