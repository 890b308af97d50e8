import type { BootEnv, PackageRepository } from '#shared/contract/boot-env.ts';
import type { BootPlanInput } from './boot-plan.ts';
import type { ParamReader } from './params.ts';
import type { InstallPlaces } from './repositories.ts';

/** Facts about the parameters and members that one file read. */
export interface RenderUse {
  isSecretBearing: boolean;
  /** Also set by a lost secret. */
  hasSecret: boolean;
  readonly lostSecrets: Set<string>;
  /** Members of dr-provision that have a constant value. */
  readonly constants: Set<string>;
}

export function newUse(): RenderUse {
  return {
    isSecretBearing: false,
    hasSecret: false,
    lostSecrets: new Set(),
    constants: new Set(),
  };
}

export interface RenderInput extends Pick<BootPlanInput, 'machine' | 'baseUrl' | 'mirrorUrl'> {
  readonly params: ParamReader;
  /** Customized. */
  readonly bootEnv: BootEnv;
  /** Entries of the param package-repositories. */
  readonly repositories: () => readonly PackageRepository[];
  /** The archive that the instance boots from; null for a repository. */
  readonly opened: Pick<NonNullable<InstallPlaces['archive']>, 'hasRelease'> | null;
}

/** Returns the path of an instance's own files, below the file root. */
export function machinePath({ uuid }: { readonly uuid: string }): string {
  return `machines/${uuid}`;
}

/**
 * Returns the URL of the archive or repository that the instance boots from, as the guest sees it.
 */
export function installUrlOf({
  baseUrl,
  machine,
}: Pick<RenderInput, 'baseUrl' | 'machine'>): string {
  return `${baseUrl}/${machinePath(machine)}/boot`;
}
