import { entryOf, NO_PROGRESS, type LifecycleEvent, type LifecycleProgress } from './lifecycle.ts';

/** The part of a view that decides which events are valid. */
export interface ProgressView {
  readonly run: string;
  /** Names of scripts, as in run-lists/boot/. */
  readonly boot: readonly string[];
  readonly decommission: readonly string[];
  /** Entry of the requested script on demand. */
  readonly command: string | null;
}

/** Why an event is invalid; `field` names the wrong field. */
export interface LifecycleRefusal {
  readonly refused: string;
  readonly field: 'run' | 'boot' | 'number' | 'type' | 'entry';
}

/**
 * Returns the progress after an event, or why the event is invalid now. Pure. A repeated event
 * changes nothing, because its answer may have been lost. Numbers may have gaps: the guest does not
 * repeat a refused event, and later events must stay valid.
 * @param isCertain false if a restart of metad may have lost events between these two
 */
export function advanceProgress(
  before: LifecycleProgress,
  event: LifecycleEvent,
  view: ProgressView,
  isCertain: boolean,
): LifecycleProgress | LifecycleRefusal {
  const { boot, number } = event;
  if (event.run !== view.run) return refuse('run', 'the event belongs to another run');
  if (event.type === 'booting') {
    if (boot === before.boot && number <= before.number) return before;
    if (boot === before.boot) return refuse('type', 'this boot has already begun');
    if (number !== 1) return refuse('number', 'the first event of a boot must have number 1');
    return { ...NO_PROGRESS, boot, number };
  }
  if (number === 1) return refuse('number', 'the first event of a boot must be booting');
  if (boot !== before.boot) {
    if (before.boot !== null || isCertain)
      return refuse('boot', 'the event belongs to another boot');
  } else if (number <= before.number) return before;
  const heard = { ...before, boot, number };
  return step(heard, event, view, isCertain);
}

function step(
  now: LifecycleProgress,
  event: Exclude<LifecycleEvent, { type: 'booting' }>,
  view: ProgressView,
  isCertain: boolean,
): LifecycleProgress | LifecycleRefusal {
  const { state, entry, last } = now;
  const cannot = (why: string): LifecycleRefusal => refuse('type', why);
  // Only the agent restarted, so the boot list does not run again.
  const isRestarted = state === 'decommissioned' && now.kind === 'service_restart';
  const isUp = state === 'operational' || state === 'stranded';
  switch (event.type) {
    case 'started':
    case 'finished': {
      const list = event.entry.startsWith('boot/')
        ? view.boot
        : event.entry.startsWith('decommission/')
          ? view.decommission
          : [view.command, entry];
      if (!list.includes(event.entry.slice(event.entry.indexOf('/') + 1)))
        return refuse('entry', 'this instance has no such script');
      if (event.type === 'finished') {
        if (isCertain && event.entry !== entry)
          return refuse('entry', 'the script was not started');
        return { ...now, entry: null, last: { entry: event.entry, status: event.status } };
      }
      if (!isCertain) return { ...now, entry: event.entry };
      if (entry !== null) return refuse('entry', `${entry} has not finished`);
      const next = nextEntry(now, view);
      if (event.entry !== next) return refuse('entry', `expected ${next ?? 'no script'} next`);
      return { ...now, entry: event.entry };
    }
    case 'operational': {
      if (state === 'operational' || isRestarted) return { ...now, state: 'operational' };
      if (isCertain && (state !== 'booting' || nextEntry(now, view) !== null))
        return cannot(
          state === 'booting' ? 'the boot list has not finished' : `the state is ${state}`,
        );
      if (isCertain && (entry !== null || (last !== null && last.status !== 0)))
        return cannot('a script of the boot list is running or has failed');
      return { ...now, state: 'operational', entry: null };
    }
    case 'stranded':
      if (isCertain && state !== 'booting' && state !== 'stranded' && !isRestarted)
        return cannot(`the state is ${state}`);
      return { ...now, state: 'stranded', entry: null };
    case 'decommissioning':
      if (isCertain && !isUp && state !== 'decommissioning') return cannot(`the state is ${state}`);
      if (state === 'decommissioning') return { ...now, kind: event.kind };
      return { ...now, state: 'decommissioning', kind: event.kind, entry: null, last: null };
    case 'decommissioned':
      if (isCertain && state !== 'decommissioning' && state !== 'decommissioned')
        return cannot(`the state is ${state}`);
      return { ...now, state: 'decommissioned', entry: null };
  }
}

/** Returns the script that may start now, or null after a failed script of the list. */
function nextEntry({ state, last }: LifecycleProgress, view: ProgressView): string | null {
  if (state === 'operational' || state === 'stranded')
    return last?.entry === view.command ? null : view.command;
  if (state === 'decommissioned') return null;
  const list = state === 'booting' ? 'boot' : 'decommission';
  if (last !== null && last.status !== 0) return null;
  const done =
    last === null ? -1 : view[list].findIndex((name) => entryOf(list, name) === last.entry);
  const next = view[list][done + 1];
  return next === undefined ? null : entryOf(list, next);
}

function refuse(field: LifecycleRefusal['field'], refused: string): LifecycleRefusal {
  return { refused, field };
}
