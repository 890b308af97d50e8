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

/** An event that was taken, and how far it brings the guest. */
export interface TakenEvent {
  readonly event: LifecycleEvent;
  readonly progress: LifecycleProgress;
  /** Something became of it that the node daemon does not know yet. */
  readonly isNews: boolean;
}

/**
 * How far a guest got with its run lists, by its own words.
 *
 * INVARIANTS: of a batch, which is of one boot, either all counts or nothing; what was heard here
 * is newer than what a view of the same run says; one script's output is held at a time, and
 * bounded; what was given with a command is known as long as its output can come, whatever the view
 * says then.
 */
export class GuestLifecycle {
  #view: ViewLifecycle;
  #progress: LifecycleProgress;
  /** Whether nothing can have been said between the last word that is known and the next one. */
  #isCertain = false;
  #output: EntryOutput | undefined;
  /** Texts that were given with commands, by their entries. */
  #inputs: ReadonlyMap<string, readonly string[]> = new Map();
  /** Those that were given before the guest was here: nobody says any more to which entries. */
  #taken: readonly string[] = [];
  #hiddenInputs: readonly string[] = [];

  constructor(view: ViewLifecycle) {
    this.#view = view;
    this.#progress = view.progress;
    this.#holdInputs();
  }

  /** The host's view was replaced. */
  follow(view: ViewLifecycle): void {
    const isSameRun = view.status.run === this.#view.status.run;
    this.#view = view;
    if (!isSameRun) this.#taken = [];
    if (!isSameRun || this.#progress.boot === null) {
      this.#progress = view.progress;
      // A run that began under our eyes: nothing can have been said of it to another metad.
      if (!isSameRun) this.#isCertain = view.progress.boot === null;
      this.#output = undefined;
    }
    this.#holdInputs();
  }

  /** What no output may show, of the commands that are wanted, run or ended last. */
  get hiddenInputs(): readonly string[] {
    return this.#hiddenInputs;
  }

  /** What another metad hid of the guest that goes on here stays hidden until its run ends. */
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
    // The same array as long as it says the same: masks are made anew for another.
    if (texts.join('\0') !== this.#hiddenInputs.join('\0')) this.#hiddenInputs = texts;
  }

  get run(): string {
    return this.#view.status.run;
  }

  /**
   * Looks at a batch and changes nothing.
   * @returns the first refusal, `field` with the index of its event; or what `accept` takes
   */
  judge(
    batch: readonly LifecycleEvent[],
  ): (LifecycleRefusal & { readonly index: number }) | readonly TakenEvent[] {
    const taken: TakenEvent[] = [];
    let progress = this.#progress;
    let isCertain = this.#isCertain;
    const view = progressView(this.#view);
    for (const [index, event] of batch.entries()) {
      // Of two boots the first has ended: said again, it would begin anew.
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

  /** What was said is said again when the host's view shows that it was not heard. */
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
   * The output of a script that runs, or was the last to end.
   * @returns undefined for any other
   */
  outputOf(entry: string): EntryOutput | undefined {
    if (this.#output?.entry === entry) return this.#output;
    const { entry: running, last } = this.#progress;
    if (entry !== running && entry !== last?.entry) return undefined;
    this.#output = new EntryOutput(entry);
    return this.#output;
  }

  /** The output that is held of a script, if there is any. */
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
