import { CallError } from '../template-error.ts';
import { NO_CHARACTER, parseRegex, type RegexNode } from './parse-regex.ts';

type Instruction =
  | { readonly kind: 'set'; readonly has: (code: number) => boolean; readonly cost: number }
  | { readonly kind: 'assert'; readonly holds: (before: number, after: number) => boolean }
  | { readonly kind: 'save'; readonly slot: number }
  /** Continues at each of the places, in order of preference. */
  | { readonly kind: 'split'; to: number[] }
  | { readonly kind: 'match' };

type Split = Instruction & { kind: 'split' };

/** Instructions of one pattern, repetitions written out. */
const MAX_PROGRAM = 4096;

export interface Regex {
  readonly program: readonly Instruction[];
  readonly names: readonly string[];
}

/** Start and end of a match and its groups, in code points; -1 for a group without a match. */
export type Slots = readonly number[];

/**
 * Compiles a pattern that is matched in linear time. JavaScript's own expressions can take
 * exponential time, in which the daemon serves nothing else.
 * @param spend takes steps: repeating an empty pattern is work without instructions
 * @throws CallError
 */
export function compileRegex(pattern: string, spend: (steps: number) => void): Regex {
  spend(pattern.length);
  const { root, names } = parseRegex(pattern);
  const program: Instruction[] = [];
  new Emitter(program, spend).emit({ kind: 'group', index: 0, of: root });
  push(program, { kind: 'match' });
  return { program, names };
}

function push(program: Instruction[], instruction: Instruction): number {
  if (program.length >= MAX_PROGRAM) throw new CallError('a pattern has too many parts');
  return program.push(instruction) - 1;
}

class Emitter {
  readonly #program: Instruction[];
  readonly #spend: (steps: number) => void;

  constructor(program: Instruction[], spend: (steps: number) => void) {
    this.#program = program;
    this.#spend = spend;
  }

  emit(node: RegexNode): void {
    this.#spend(1);
    switch (node.kind) {
      case 'set':
      case 'assert':
        push(this.#program, node);
        return;
      case 'all':
        for (const part of node.parts) this.emit(part);
        return;
      case 'group':
        push(this.#program, { kind: 'save', slot: node.index * 2 });
        this.emit(node.of);
        push(this.#program, { kind: 'save', slot: node.index * 2 + 1 });
        return;
      case 'either':
        this.#emitEither(node.choices);
        return;
      case 'repeat':
        this.#emitRepeat(node);
    }
  }

  #emitEither(choices: readonly RegexNode[]): void {
    const program = this.#program;
    const [first, ...others] = choices;
    if (!first) return;
    if (others.length === 0) {
      this.emit(first);
      return;
    }
    const split: Split = { kind: 'split', to: [] };
    push(program, split);
    const leaves = choices.map((choice) => {
      split.to.push(program.length);
      this.emit(choice);
      const leave: Split = { kind: 'split', to: [] };
      push(program, leave);
      return leave;
    });
    for (const leave of leaves) leave.to = [program.length];
  }

  #emitRepeat(node: RegexNode & { kind: 'repeat' }): void {
    const program = this.#program;
    const order = (into: number, past: number): number[] =>
      node.isLazy ? [past, into] : [into, past];
    for (let count = 0; count < node.least; count += 1) this.emit(node.of);
    if (node.most === Infinity) {
      const split: Split = { kind: 'split', to: [] };
      const at = push(program, split);
      this.emit(node.of);
      push(program, { kind: 'split', to: [at] });
      split.to = order(at + 1, program.length);
      return;
    }
    const splits: { readonly at: number; readonly split: Split }[] = [];
    for (let count = node.least; count < node.most; count += 1) {
      const split: Split = { kind: 'split', to: [] };
      splits.push({ at: push(program, split), split });
      this.emit(node.of);
    }
    for (const { at, split } of splits) split.to = order(at + 1, program.length);
  }
}

interface Thread {
  readonly at: number;
  readonly slots: Slots;
}

/**
 * Finds the leftmost match from a place on, and the preferred one among those.
 * @param spend takes steps by the work at each character
 */
export function findMatch(
  { program, names }: Regex,
  text: readonly number[],
  from: number,
  spend: (steps: number) => void,
): Slots | null {
  const none: Slots = Array.from({ length: names.length * 2 }, () => -1);
  let threads: Thread[] = [];
  let matched: Slots | null = null;
  for (let at = from; at <= text.length; at += 1) {
    const seen = new Set<number>();
    const [before, after] = [text[at - 1] ?? NO_CHARACTER, text[at] ?? NO_CHARACTER];
    const here: Thread[] = [];
    const starts = matched ? threads : [...threads, { at: 0, slots: none }];
    for (const start of starts) follow(program, start, { at, before, after }, seen, here);
    let work = 1 + (seen.size >> 1);
    threads = [];
    for (const thread of here) {
      const instruction = program[thread.at];
      if (instruction?.kind === 'match') {
        matched = thread.slots;
        break;
      }
      if (instruction?.kind !== 'set' || after === NO_CHARACTER) continue;
      work += instruction.cost;
      if (instruction.has(after)) threads.push({ at: thread.at + 1, slots: thread.slots });
    }
    spend(work);
    if (matched && threads.length === 0) break;
  }
  return matched;
}

interface Place {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** Collects the threads that are reachable without reading a character, the preferred first. */
function follow(
  program: readonly Instruction[],
  start: Thread,
  place: Place,
  seen: Set<number>,
  into: Thread[],
): void {
  const open: Thread[] = [start];
  for (let thread = open.pop(); thread; thread = open.pop()) {
    if (seen.has(thread.at)) continue;
    seen.add(thread.at);
    const { slots } = thread;
    const next = thread.at + 1;
    const instruction = program[thread.at];
    if (instruction?.kind === 'split')
      open.push(...instruction.to.toReversed().map((at) => ({ at, slots })));
    else if (instruction?.kind === 'save')
      open.push({ at: next, slots: slots.with(instruction.slot, place.at) });
    else if (instruction?.kind === 'assert') {
      if (instruction.holds(place.before, place.after)) open.push({ at: next, slots });
    } else into.push(thread);
  }
}
