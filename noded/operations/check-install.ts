import { isAbsolute } from 'node:path';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { refuseOversizedImage } from '../content/images/write-image.ts';
import { checkPackageFile, validatePackageUrl } from '../content/downloads/package-source.ts';
import {
  chooseCreateScripts,
  requireHelper,
  type ChosenScripts,
} from '../provision/os/choose-scripts.ts';
import { bootEnvOfRun } from '../instances/view/boot-environment.ts';
import { loadAppliance } from '../instances/record/choose-appliance.ts';
import { installationParameters } from '../instances/parameters/installation-parameters.ts';
import {
  hasMedium,
  hasSystemOnDisk,
  refuseImageAndMedium,
} from '../instances/machines/plan-boot.ts';
import type { JobSecrets } from '../instances/parameters/job-secrets.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import { type OsParameters, refuseTooLarge } from '../instances/parameters/os-parameters.ts';
import type { OsSelection } from '../provision/os/os-registry.ts';
import { checkParametersByOs } from './check-parameters-by-os.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { requireAppliance } from './require-appliance.ts';
import { refuseBlacklisted, type SelectedOs, selectOs } from './os-policy.ts';

type Installable = Pick<
  InstanceRecord,
  | 'osType'
  | 'osImage'
  | 'osImageFormat'
  | 'disks'
  | 'personalizationPackage'
  | 'installParameters'
  | 'safeInstall'
  | 'appliance'
  | 'osParameters'
  | 'osParametersPrivate'
  | 'secretNames'
  | 'profiles'
  | 'bootEnv'
  | 'diskTemplate'
  | 'hooks'
  | 'hvparams'
>;

export interface InstallDecision {
  readonly os: OsSelection | null;
  readonly scripts: ChosenScripts;
  /**
   * Judges the script for the host again: hours may pass between the decision and the run.
   * @throws AppError OS_BLACKLISTED, OS_NOT_TRUSTED
   */
  readonly confirmHostScript: () => Promise<void>;
  readonly isFromMedium: boolean;
  /** Name of the appliance to use if one is needed. */
  readonly appliance: string;
  readonly parameters: OsParameters;
  readonly hooks: readonly HookDocument[];
  /** The order of the hooks, for display; null without hooks. */
  readonly hookBook: HookBook | null;
}

export interface GivenToCheck {
  readonly secrets: JobSecrets['osParameters'];
  readonly signal: AbortSignal;
  /** Seconds for the installation, and so for `verify`; 0 means no limit. */
  readonly timeoutS: number;
  readonly isReinstall: boolean;
  /** Accept the variant even if the definition does not list it. */
  readonly forceVariant?: boolean | undefined;
  /** The OS definition's `import` fills the disks. */
  readonly isImport?: boolean;
}

/**
 * Refuses an impossible installation before anything changes.
 * @throws AppError of exit status 2
 */
export async function checkInstall(
  instance: Installable,
  given: GivenToCheck,
  dependencies: OperationDependencies,
): Promise<InstallDecision> {
  const isFromMedium = hasMedium(instance);
  refuseContradiction(instance, isFromMedium, given.isImport === true);
  const { cdrom_image_path: cdrom } = installationParameters(instance);
  if (isFromMedium && cdrom?.startsWith('/') === false) await dependencies.images.check(cdrom);
  const decision = await checkOs(instance, isFromMedium, given, dependencies);
  const appliance = await loadAppliance(instance, dependencies.clusters);
  // Needed even if it is not booted: its manifest tells whether it can run hooks.
  await requireAppliance(appliance, dependencies);
  refuseImageWithoutDisk(instance);
  if (instance.osImage !== null)
    await dependencies.images.check(instance.osImage, (file) =>
      refuseOversizedImage(file, instance),
    );
  if (instance.personalizationPackage !== null) await checkPackage(instance.personalizationPackage);
  if (instance.diskTemplate !== 'diskless') await dependencies.disks.checkSpace(instance);
  const chosen = { ...decision, appliance: appliance.name };
  const checked = await checkHooks(instance, chosen, given, dependencies);
  refuseLateHooks(chosen, checked.hookBook);
  return { ...chosen, ...checked };
}

/**
 * Refuses hooks before a script that runs on the host alone. Hooks run in the appliance, which
 * boots after that script.
 * @throws AppError VALIDATION
 */
export function refuseLateHooks(
  { os, scripts }: Pick<InstallDecision, 'os' | 'scripts'>,
  book: HookBook | null,
): void {
  if (scripts.host === null || scripts.appliance !== null) return;
  const late = book?.stages.find(({ stage }) => stage === 'os-scripts.before');
  if (late === undefined) return;
  const files = [...new Set(late.steps.map(({ file }) => file))].join(', ');
  throw new AppError(
    'VALIDATION',
    `hooks of the stage os-scripts.before (${files}) cannot run before the create script of OS '${os?.definition.name}', which runs on the node`,
    { details: { files }, hint: 'Name the stage image.after instead' },
  );
}

async function checkHooks(
  instance: Installable,
  { os, appliance }: Pick<InstallDecision, 'os' | 'appliance'>,
  { isReinstall, signal }: GivenToCheck,
  { hookChecker }: OperationDependencies,
): Promise<Pick<InstallDecision, 'hooks' | 'hookBook'>> {
  const osPath = os?.definition.path ?? null;
  const hasImage = hasSystemOnDisk(instance);
  const { documents, book } = await hookChecker.check(
    { osPath, instance: instance.hooks, hasImage, isReinstall, appliance },
    signal,
  );
  return { hooks: documents, hookBook: book };
}

/** @throws AppError VALIDATION */
export function refuseImageWithoutDisk({
  diskTemplate,
  osImage,
}: Pick<InstanceRecord, 'diskTemplate' | 'osImage'>): void {
  if (diskTemplate !== 'diskless' || osImage === null) return;
  throw new AppError(
    'VALIDATION',
    `an OS image needs a disk, but the disk template is 'diskless'`,
    {
      hint: 'Leave out --os-image, or use --disk-template file.',
    },
  );
}

/** Refuses an installation without a source, and two sources that would both fill the disks. */
function refuseContradiction(
  instance: Installable,
  isFromMedium: boolean,
  isImport: boolean,
): void {
  const bootsChannel = bootEnvOfRun(instance) !== null;
  if (instance.osType === null && instance.osImage === null && !isFromMedium && !bootsChannel) {
    throw new AppError('VALIDATION', 'No guest OS or OS image specified', {
      hint: 'Give --os-type, --os-image or both, a medium with --install-parameters, or --bootenv. List OS definitions: gnt-os list',
    });
  }
  refuseImageAndMedium(instance);
  if (isFromMedium && isImport) {
    throw new AppError('VALIDATION', 'an import and an installation medium exclude each other');
  }
}

async function checkOs(
  instance: Installable,
  isFromMedium: boolean,
  given: GivenToCheck,
  dependencies: OperationDependencies,
): Promise<Omit<InstallDecision, 'appliance' | 'hooks' | 'hookBook'>> {
  const { clusters, hostCopies } = dependencies;
  const noScripts = { appliance: null, host: null };
  const parameters = await loadParameters(instance, clusters, given.secrets);
  refuseTooLarge(parameters);
  const { osType } = instance;
  if (osType === null) {
    const confirmHostScript = async (): Promise<void> => {};
    return { os: null, scripts: noScripts, confirmHostScript, isFromMedium, parameters };
  }
  const select = async (): Promise<SelectedOs> => {
    const selected = await selectOs(osType, dependencies, {
      forceVariant: given.forceVariant === true,
    });
    refuseBlacklisted(osType, selected.policy);
    return selected;
  };
  const choose = ({ os: { definition }, policy }: SelectedOs): ChosenScripts =>
    given.isImport === true
      ? { ...noScripts, ...requireHelper(definition, 'import', policy) }
      : chooseCreateScripts(definition, { ...policy, isSafeInstall: instance.safeInstall });
  const selected = await select();
  const { os, policy } = selected;
  await checkParametersByOs(os, policy, instance, parameters, hostCopies, given);
  const confirmHostScript = async (): Promise<void> => {
    if (choose(await select()).host !== null) return;
    throw new AppError('OS_NOT_TRUSTED', `OS '${osType}' may no longer run scripts on the host`, {
      hint: `Its settings in gnt-os modify or gnt-cluster modify changed since the operation began: gnt-os info ${osType}`,
    });
  };
  return { os, isFromMedium, parameters, scripts: choose(selected), confirmHostScript };
}

/** @throws AppError PACKAGE_SOURCE */
export async function checkPackage(source: string): Promise<void> {
  validatePackageUrl(source);
  if (isAbsolute(source)) await checkPackageFile(source);
}
