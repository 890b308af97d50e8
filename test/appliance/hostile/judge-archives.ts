import { isAppError } from '#shared/errors/app-error.ts';
import { TarGate } from '../../../appliance/agent/overlay/tar-gate.ts';
import { compareArchive, knownRefusals } from './compare-archive.ts';
import { type TarReading, TarReadings } from './tar-readings.ts';

export type Judgement =
  | { readonly kind: 'same' }
  /** By both, or by the gate for an expected reason. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'different'; readonly how: string };

type Gate = Pick<TarGate, 'push' | 'end' | 'passed'>;

interface Gated {
  readonly archive: Buffer;
  /** The bytes for tar, or null when the gate refuses the archive. */
  readonly passed: Buffer | null;
  readonly entries: number;
  readonly why: string;
}

/**
 * Judges many archives at once. GNU tar must read the passed bytes as the gate did: as many
 * entries, none of a kind or a name that the gate refuses. They must become the tree of the whole
 * archive. Equal bytes are unpacked once; `compareArchive` unpacks twice, once like the installer.
 */
export async function judgeArchives(
  archives: readonly Buffer[],
  folder: string,
  createGate: () => Gate = () => new TarGate(),
): Promise<readonly Judgement[]> {
  const gated = archives.map((archive) => passGate(archive, createGate()));
  const taken = gated.flatMap(({ passed }) => (passed === null ? [] : [passed]));
  const changed = gated.filter(({ passed, archive }) => passed?.equals(archive) === false);
  using ours = new TarReadings(taken, folder);
  using theirs = new TarReadings(
    changed.map(({ archive }) => archive),
    folder,
  );
  const readings = { ours: ours.all.values(), theirs: theirs.all.values() };
  const judgements: Judgement[] = [];
  for (const one of gated) {
    if (one.passed === null) judgements.push(await judgeRefusal(one, folder));
    else {
      const isChanged = changed.includes(one);
      const reading = readings.ours.next().value as TarReading; // one for each accepted archive
      const whole = isChanged ? (readings.theirs.next().value as TarReading) : null;
      judgements.push(judgeTaken(one, reading, whole));
    }
  }
  return judgements;
}

function passGate(archive: Buffer, gate: Gate): Gated {
  try {
    const passed = Buffer.concat(gate.push(archive));
    gate.end();
    return { archive, passed, entries: gate.passed.entries, why: '' };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { archive, passed: null, entries: 0, why: error.message };
  }
}

async function judgeRefusal({ archive, why }: Gated, folder: string): Promise<Judgement> {
  if (knownRefusals.some((known) => known.test(why))) return { kind: 'refused' };
  const compared = await compareArchive(archive, folder);
  if (compared.kind === 'refused' && compared.tarSays !== null) return { kind: 'refused' };
  return { kind: 'different', how: `refused, and GNU tar takes it: ${why}` };
}

function judgeTaken({ entries }: Gated, ours: TarReading, theirs: TarReading | null): Judgement {
  // Its first message ends an installation.
  if (ours.complaint !== null) return { kind: 'refused' };
  const unsafe = ours.entries.find(
    (line) => !SAFE_ENTRY.test(line) || /\.\.(\/|$)/.test(nameOf(line)),
  );
  if (unsafe !== undefined) return { kind: 'different', how: `tar finds: ${unsafe}` };
  if (ours.entries.length !== entries)
    return { kind: 'different', how: `${entries} judged, tar finds ${ours.entries.join('\n')}` };
  if (theirs === null) return { kind: 'same' };
  if (theirs.complaint !== null)
    return { kind: 'different', how: `tar refuses the whole: ${theirs.complaint}` };
  const [our, their] = [ours.tree(), theirs.tree()];
  if (our.join('\n') === their.join('\n')) return { kind: 'same' };
  return { kind: 'different', how: `ours:\n${our.join('\n')}\ntar:\n${their.join('\n')}` };
}

/** A file, directory or link with mode, owner, size and time, and a relative name. */
const SAFE_ENTRY = /^[-Cdlh]\S+ +\d+\/\d+ +\d+ \S+ \S+ [^/]/;

/** Removes the link target. */
function nameOf(line: string): string {
  const [, name = ''] = /^\S+ +\S+ +\d+ \S+ \S+ (.*?)( -> | link to |$)/.exec(line) ?? [];
  return name;
}
