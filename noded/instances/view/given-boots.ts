import type { ViewBoot, ViewBootFile } from '#shared/contract/boot-view.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import type { RunningBootEnv } from '#shared/contract/instance.ts';
import type { BootSource } from '../../netboot/boot-plan.ts';

/** A guest's boot without the values of secrets, which only metad has. */
interface GivenBoot {
  readonly view: ViewBoot;
  readonly source: BootSource | null;
}

interface Given {
  readonly last: GivenBoot | null;
  readonly state: RunningBootEnv;
  /** Public contents of the files that the guest was shown, by path. */
  readonly shown: ReadonlyMap<string, string | undefined>;
}

/** Remembers the boots of running guests and their rendering failures. */
export class GivenBoots {
  readonly #given = new Map<string, Given>();

  /**
   * @param shown view for the guest
   * @param last basis of later views if rendering fails
   */
  give(uuid: string, shown: ViewBoot, last: GivenBoot): void {
    const former = this.#given.get(uuid);
    const name = last.view.bootEnv;
    const isSame = former?.last?.view.bootEnv === name;
    const before = new Map(isSame ? former.shown : []);
    const now = new Map(before);
    const lost: { path: string; secrets: string[] }[] = [];
    for (const [path, file] of Object.entries(shown.files)) {
      if (!('lost' in file)) now.set(path, file.basis);
      else if (isOutdated(before, path, file)) lost.push({ path, secrets: [...file.lost] });
    }
    this.#given.set(uuid, { last, shown: now, state: { name, failure: null, lost } });
  }

  /** Notes a failure. The guest keeps its last boot. */
  fail(uuid: string, name: string, { code, message }: AppError): void {
    const former = this.#given.get(uuid);
    const state = { name, failure: { code, message }, lost: former?.state.lost ?? [] };
    this.#given.set(uuid, { ...(former ?? { last: null, shown: new Map() }), state });
  }

  /** Returns the last boot; null if there is none or an earlier daemon rendered it. */
  last(uuid: string): GivenBoot | null {
    return this.#given.get(uuid)?.last ?? null;
  }

  state(uuid: string): RunningBootEnv | null {
    return this.#given.get(uuid)?.state ?? null;
  }

  forget(uuid: string): void {
    this.#given.delete(uuid);
  }
}

/**
 * Returns true if the guest was shown other public values, so that metad drops the file
 * (keepBootFiles).
 */
function isOutdated(
  before: ReadonlyMap<string, string | undefined>,
  path: string,
  { basis }: ViewBootFile,
): boolean {
  return before.has(path) && before.get(path) !== basis;
}
