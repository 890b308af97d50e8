import type { ViewBoot, ViewBootFile } from '#shared/contract/boot-view.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import type { RunningBootEnv } from '#shared/contract/instance.ts';
import type { BootSource } from '../../netboot/boot-plan.ts';

/** What a guest was given, without the values of secrets: metad has those. */
interface GivenBoot {
  readonly view: ViewBoot;
  readonly source: BootSource | null;
}

interface Given {
  readonly last: GivenBoot | null;
  readonly state: RunningBootEnv;
  /** What is not secret in the files that its guest was shown, by path. */
  readonly shown: ReadonlyMap<string, string | undefined>;
}

/** What guests that run were given to boot by, and what came in between. */
export class GivenBoots {
  readonly #given = new Map<string, Given>();

  /**
   * @param shown to the guest
   * @param last what later views have where nothing can be rendered
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

  /** Notes a failure; what the guest was given goes on. */
  fail(uuid: string, name: string, { code, message }: AppError): void {
    const former = this.#given.get(uuid);
    const state = { name, failure: { code, message }, lost: former?.state.lost ?? [] };
    this.#given.set(uuid, { ...(former ?? { last: null, shown: new Map() }), state });
  }

  /** What it was given last; null where that was nothing, or a daemon before this one gave it. */
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

/** Its guest had it with other public values, and gets it no more (metad's keepBootFiles). */
function isOutdated(
  before: ReadonlyMap<string, string | undefined>,
  path: string,
  { basis }: ViewBootFile,
): boolean {
  return before.has(path) && before.get(path) !== basis;
}
