import { readFile } from 'node:fs/promises';
import type { MachineNature } from '#shared/contract/migration.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readProcFile } from '../host/process-facts.ts';
import type { Machine } from './machine.ts';

/** Arguments that differ between QEMU processes and look the same to the guest. */
const OWN_PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\bfd=\d+/g, 'fd=N'],
  [/\/proc\/self\/fd\/\d+/g, '/proc/self/fd/N'],
  [/cache\.direct=(on|off)/g, 'cache.direct=X'],
];
/** Arguments of an incoming guest only, and the name, which may have changed. */
const OWN_WORDS = new Set(['-S', '-incoming', '-name']);
const WITH_VALUE = new Set(['-incoming', '-name']);

/** Returns QEMU's arguments without host-specific parts. */
export function comparableArguments([, ...words]: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (WITH_VALUE.has(word)) index += 1;
    if (OWN_WORDS.has(word)) continue;
    kept.push(OWN_PATTERNS.reduce((text, [own, same]) => text.replace(own, same), word));
  }
  return kept;
}

/** @returns the first difference, or undefined */
export function differenceOf(
  ours: readonly string[],
  theirs: readonly string[],
): string | undefined {
  const [a, b] = [comparableArguments(ours), comparableArguments(theirs)];
  for (let index = 0; index < Math.max(a.length, b.length); index += 1)
    if (a[index] !== b[index]) return `'${b[index] ?? ''}' there, '${a[index] ?? ''}' here`;
  return undefined;
}

/** Returns the reason why a guest cannot continue here, or undefined. */
export function misfitOf(theirs: MachineNature, here: MachineNature): string | undefined {
  if (theirs.accelerator !== here.accelerator)
    return `it runs with ${theirs.accelerator}, but this node only has ${here.accelerator}`;
  if (theirs.qemu !== here.qemu)
    return `its QEMU version is ${theirs.qemu}, but this node has ${here.qemu}`;
  if (theirs.board !== here.board)
    return `its machine type is ${theirs.board}, but this node has ${here.board}`;
  if (theirs.processor === null) return undefined;
  const has = new Set((here.processor?.flags ?? '').split(' '));
  const missing = theirs.processor.flags.split(' ').filter((flag) => flag !== '' && !has.has(flag));
  if (missing.length > 0)
    return `its processor has features that this node lacks: ${missing.join(', ')}`;
  const [model, own] = [theirs.processor.model, here.processor?.model];
  return model === own
    ? undefined
    : `its processor is ${model}, but this node has ${own ?? 'unknown'}`;
}

/** @throws AppError NOT_SUPPORTED */
export function requireFit(theirs: MachineNature, here: MachineNature): void {
  const misfit = misfitOf(theirs, here);
  if (misfit === undefined) return;
  throw new AppError('NOT_SUPPORTED', `the running guest cannot move to this node: ${misfit}`, {
    hint: 'Stop the guest, move it and start it there: gnt-instance shutdown, gnt-instance move, gnt-instance startup',
  });
}

/** With KVM the guest sees the host's processor. */
export async function readProcessor(
  accelerator: MachineNature['accelerator'],
): Promise<MachineNature['processor']> {
  if (accelerator === 'tcg') return null;
  const text = await readFile('/proc/cpuinfo', 'utf8');
  const field = (name: string): string =>
    new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(text)?.[1] ?? '';
  return { model: field('model name'), flags: field('flags') };
}

export async function natureOf({ accelerator, migration }: Machine): Promise<MachineNature> {
  return {
    ...(await migration.describe()),
    accelerator,
    processor: await readProcessor(accelerator),
  };
}

export function argumentsOf({ pid }: Machine): readonly string[] {
  const words = (readProcFile(pid, 'cmdline') ?? '').split('\0');
  return words.slice(0, -1);
}
