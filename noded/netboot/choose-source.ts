import { EFI_LOADER, type BootEnv, type PackageRepository } from '#shared/contract/boot-env.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootPlanInput, BootSource } from './boot-plan.ts';
import { bootUrlOf, machineRepositories } from './repositories.ts';

/**
 * Chooses the source of kernel and initrds: the BootEnv's opened archive on this node, else an
 * installation repository of its system below an allowed package mirror. Null for a BootEnv that
 * loads neither.
 * @throws AppError BOOTENV_NO_SOURCE
 */
export function chooseSource(
  bootEnv: BootEnv,
  repositories: () => readonly PackageRepository[],
  { archive, isAllowed }: Pick<BootPlanInput, 'archive' | 'isAllowed'>,
): BootSource | null {
  const { IsoFile, Sha256, Kernel, Initrds } = bootEnv.OS.SupportedArchitectures.amd64;
  const loader = bootEnv.Loaders[EFI_LOADER];
  const needed = [Kernel, ...Initrds, loader ?? ''].filter((path) => path !== '');
  const opened = IsoFile === '' ? null : archive(IsoFile, Sha256);
  if (opened) {
    const missing = needed.find((path) => !opened.has(path));
    if (missing !== undefined)
      throw new AppError(
        'BOOTENV_NO_SOURCE',
        `BootEnv ${bootEnv.Name}: the archive ${IsoFile} has no ${missing}`,
        {
          details: { bootEnv: bootEnv.Name, isoFile: IsoFile, path: missing },
          hint: 'Correct the path in the BootEnv, or upload the archive that it belongs to.',
        },
      );
    return { kind: 'archive', isoFile: IsoFile, sha256: opened.sha256 };
  }
  if (needed.length === 0) return null;
  const sources = machineRepositories(repositories(), bootEnv.OS.Name).filter(
    ({ installSource }) => installSource,
  );
  const url = sources.map(bootUrlOf).find(isAllowed);
  if (url !== undefined) return { kind: 'repository', url };
  throw noSource(bootEnv, IsoFile, sources.map(bootUrlOf));
}

function noSource(bootEnv: BootEnv, isoFile: string, refused: readonly string[]): AppError {
  const { Name, OS } = bootEnv;
  const [first] = refused;
  const reason =
    first === undefined
      ? `no package-repositories entry has an installSource for ${OS.Name}`
      : `its installSource ${first} is not below an allowed package mirror`;
  const opened =
    isoFile === '' ? 'it names no archive' : `the archive ${isoFile} is not extracted on this node`;
  const upload = `gnt-bootenv add-iso ${Name}`;
  const allow = `gnt-cluster modify --package-mirror NAME=${first ?? ''}`;
  return new AppError(
    'BOOTENV_NO_SOURCE',
    `BootEnv ${Name} has nothing to boot from: ${opened}, and ${reason}`,
    {
      details: { bootEnv: Name, isoFile, osName: OS.Name },
      hint:
        [isoFile === '' ? null : upload, first === undefined ? null : allow]
          .filter((step) => step !== null)
          .join(', or: ') || `Give an IsoFile, or an installSource for ${OS.Name}.`,
    },
  );
}
