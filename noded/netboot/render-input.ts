import type { BootEnv, PackageRepository } from '#shared/contract/boot-env.ts';
import type { BootPlanInput } from './boot-plan.ts';
import type { ParamReader } from './params.ts';
import type { InstallPlaces } from './repositories.ts';

export interface RenderUse {
  isSecretBearing: boolean;
  /** Also set by a lost secret. */
  hasSecret: boolean;
  readonly lostSecrets: Set<string>;
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
  readonly repositories: () => readonly PackageRepository[];
  /** The archive that the instance boots from; null for a repository. */
  readonly opened: Pick<NonNullable<InstallPlaces['archive']>, 'hasRelease'> | null;
}

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
