import { MAX_TABLE_BYTES, sizeOfTexts } from '#shared/contract/bounded-texts.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import { mergePlainSettings } from '#shared/contract/plain-settings.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { newTag } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  hasSeedDisk,
  refuseUnservedNetworkConfig,
} from '../instances/view/cloud-init-datasource.ts';
import { acceptHostKeys } from '../instances/reports/host-keys.ts';
import { sortHooks } from '../instances/view/hook-files.ts';
import { takeSecrets } from '../instances/parameters/job-secrets.ts';
import { refuseLostDocuments } from '../instances/record/lost-documents.ts';
import { loadAppliance } from '../instances/record/choose-appliance.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import { refuseTooLarge } from '../instances/parameters/os-parameters.ts';
import { mergeImage, mergePackage } from '../instances/record/merge-content.ts';
import {
  mergeChanges,
  mergeOsParameters,
  mergeSettings,
  mergeTags,
} from '../instances/record/merge-changes.ts';
import {
  DEFAULT_BACKEND_PARAMETERS,
  refuseDuplicateParameters,
  refuseSeedWithout,
} from '../instances/record/plan-record.ts';
import {
  hasSystemOnDisk,
  refuseImageAndMedium,
  refuseUnbootable,
} from '../instances/machines/plan-boot.ts';
import { installationParameters } from '../instances/parameters/installation-parameters.ts';
import { checkBootFiles, refuseEmptyMedium } from '../instances/view/readable-by-all.ts';
import { describeUnkept, describeUnread } from '../instances/record/unread-values.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { chooseCreateScripts } from '../provision/os/choose-scripts.ts';
import { checkParametersByOs } from './check-parameters-by-os.ts';
import { checkPackage, refuseImageWithoutDisk } from './check-install.ts';
import { checkRunLists } from './check-run-lists.ts';
import { checkHostPaths } from './host-paths.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { givePorts, plugParts, settlePorts, unplugDisk } from './plug-parts.ts';
import { applyParts, changesDatasource, planParts, tellParts } from './change-running-parts.ts';
import { refuseUnknownProfiles } from './profiles.ts';
import { refuseOversized } from '../instances/view/refuse-oversized.ts';
import { requireAppliance } from './require-appliance.ts';
import { refuseBlacklisted, selectOs } from './os-policy.ts';

export function modifyInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_SET_PARAMS'>> {
  const { instances, runner, disks } = dependencies;
  return {
    prepare: async (opcode, signal) => {
      refuseDuplicateParameters(opcode);
      const instance = await instances.findByName(opcode.name);
      refuseOtherInstallation(instance, opcode);
      const planned = applyChanges(instance, opcode);
      refuseNewTags(instance.tags, planned.tags);
      refuseOversized(planned.beparams, instance.beparams);
      if (changesFiles(opcode)) {
        await checkHostPaths(planned, dependencies.clusters);
        refuseUnbootable(planned);
      }
      await refuseUnknownProfiles(opcode.profiles ?? [], dependencies.clusters);
      await checkSources(planned, opcode, dependencies);
      const appliance = await loadAppliance(planned, dependencies.clusters);
      if (opcode.appliance != null) await requireAppliance(appliance, dependencies);
      if (opcode.hooks !== undefined)
        await checkHooks(planned, appliance.name, dependencies, signal);
      refuseLargeMetadata(planned, opcode);
      if (changesOs(opcode)) await checkOs(planned, opcode, dependencies, signal);
      refuseUnservedSeed(instance, planned, opcode);
      if (changesBoot(opcode))
        await dependencies.bootViews.check(planned, takeSecrets(opcode), signal);
      if (changesRunLists(opcode)) await checkRunLists(planned, dependencies);
      if (changesDatasource(opcode)) refuseUnservedNetworkConfig(planned);
      refuseLostDocuments(
        planned,
        definedOf(opcode, ['userData', 'vendorData', 'dialects', 'hvparams', 'tags', 'addTags']),
      );
      const drawn = await planParts(instance, opcode, dependencies);
      return async (context) => {
        const changesParts = opcode.nics.length + opcode.disks.length > 0;
        const isRunning = runner.isRunning(instance.uuid);
        const before = isRunning ? instance : null;
        const parts = isRunning ? givePorts(instance, drawn) : drawn;
        if (changesParts)
          await settlePorts(instance, runner.running(instance.uuid)?.machine, instances);
        const gone = instance.disks.find(({ uuid }) => parts.disks.every((d) => d.uuid !== uuid));
        if (isRunning && gone !== undefined) await unplugDisk(instance, gone.uuid, dependencies);
        const commit = (): Promise<InstanceRecord> =>
          instances.update(instance.uuid, (current) =>
            applyParts(applyChanges(current, opcode), parts, before),
          );
        const committed =
          opcode.disks.length === 0
            ? await commit()
            : await disks.change(instance, parts.disks, commit);
        const changed = changesParts
          ? await plugParts(committed, dependencies, context)
          : committed;
        tellParts(instance, changed, opcode, context);
        const unread = describeUnread(changed, opcode);
        if (unread !== null) context.report.log(unread, 'warn');
        const unkept = isRunning ? null : describeUnkept(opcode);
        if (unkept !== null) context.report.log(unkept, 'warn');
        if (runner.running(instance.uuid) !== undefined) {
          await runner.republish(changed, takeSecrets(opcode));
        }
        return { name: instance.name };
      };
    },
  };
}

/**
 * Refuses a change that was meant for an earlier installation of the instance.
 * @throws AppError CONFLICT
 */
export function refuseOtherInstallation(
  { name, instanceId }: Pick<InstanceRecord, 'name' | 'instanceId'>,
  opcode: Pick<OpcodeOf<'INSTANCE_SET_PARAMS'>, 'instanceId'>,
): void {
  if (opcode.instanceId === undefined || opcode.instanceId === instanceId) return;
  throw new AppError(
    'CONFLICT',
    `${name} was reinstalled meanwhile: it is ${instanceId}, not ${opcode.instanceId}`,
    { hint: `Look at it again: gnt-instance info ${name}` },
  );
}

function changesFiles({
  hvparams,
  installParameters,
  osImage,
  personalizationPackage,
}: OpcodeOf<'INSTANCE_SET_PARAMS'>): boolean {
  const isChanged = Object.keys({ ...hvparams, ...installParameters }).length > 0;
  return isChanged || osImage != null || personalizationPackage != null;
}

/**
 * Refuses sources that the next installation would refuse, which may be years away.
 * @throws AppError IMAGE_SOURCE, PACKAGE_SOURCE, HOST_PREREQUISITE, VALIDATION
 */
async function checkSources(
  planned: InstanceRecord,
  { osImage, personalizationPackage, installParameters, bootEnv }: OpcodeOf<'INSTANCE_SET_PARAMS'>,
  { images }: Pick<OperationDependencies, 'images'>,
): Promise<void> {
  if (osImage != null) {
    refuseImageWithoutDisk(planned);
    await images.check(osImage);
  }
  if (personalizationPackage != null) await checkPackage(personalizationPackage);
  const changed = Object.values(installParameters ?? {}).some((value) => value != null);
  if (changed) {
    const medium = installationParameters(planned);
    await checkBootFiles(medium);
    await refuseEmptyMedium(planned.installParameters);
    const { cdrom_image_path: cdrom } = medium;
    if (cdrom?.startsWith('/') === false) await images.check(cdrom);
  }
  if (changed || osImage != null || bootEnv != null) refuseImageAndMedium(planned);
}

/**
 * Refuses a seed disk without its dialect, and dialects that would remove one unasked. Pure.
 * @throws AppError VALIDATION
 */
export function refuseUnservedSeed(
  before: InstanceRecord,
  planned: InstanceRecord,
  { seedDisk, dialects }: OpcodeOf<'INSTANCE_SET_PARAMS'>,
): void {
  const isLost = dialects !== undefined && seedDisk === undefined && hasSeedDisk(before);
  if (seedDisk === true || isLost) refuseSeedWithout(planned.dialects);
}

function changesRunLists(opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>): boolean {
  const { runLists, communication, dialects } = opcode;
  return (
    changesOs(opcode) || [runLists, communication, dialects].some((value) => value !== undefined)
  );
}

/** Returns whether a change affects the rendered BootEnv or the ability to boot into it. */
function changesBoot(opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>): boolean {
  const { bootEnv, communication, dialects, metadataToken, hvparams, installParameters } = opcode;
  const ofChannel = [bootEnv, communication, dialects, metadataToken];
  const given = [...ofChannel, hvparams.kernel_path, installParameters];
  return changesOs(opcode) || given.some((value) => value !== undefined);
}

function changesOs(opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>): boolean {
  const { osParameters, osParametersPrivate, osParametersSecret } = opcode;
  const names = Object.keys({ ...osParameters, ...osParametersPrivate, ...osParametersSecret });
  return opcode.osType !== undefined || opcode.profiles !== undefined || names.length > 0;
}

/** Checks hooks now, not at the next reinstallation, which may be years away. */
async function checkHooks(
  instance: InstanceRecord,
  appliance: string,
  { osRegistry, hookChecker }: OperationDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { osType, hooks } = instance;
  if (hooks.length === 0) return;
  const os = osType === null ? null : await osRegistry.find(osType, { forceVariant: true });
  const osPath = os?.definition.path ?? null;
  const hasImage = hasSystemOnDisk(instance);
  const query = { osPath, instance: hooks, hasImage, isReinstall: true, appliance };
  await hookChecker.check(query, signal);
}

/** Refuses a table that is too large: the contract bounds only each change. */
function refuseLargeMetadata(
  { metadata }: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>,
): void {
  const bytes = sizeOfTexts(metadata);
  if (Object.keys(opcode.metadata).length === 0 || bytes <= MAX_TABLE_BYTES) return;
  throw new AppError(
    'VALIDATION',
    `the metadata would have ${bytes} bytes of keys and values, more than ${MAX_TABLE_BYTES}`,
    { details: { bytes, maxBytes: MAX_TABLE_BYTES }, hint: 'Remove a key: --metadata -KEY' },
  );
}

async function checkOs(
  planned: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>,
  dependencies: OperationDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { clusters, hostCopies } = dependencies;
  const { osParameters: secrets } = takeSecrets(opcode);
  const parameters = await loadParameters(planned, clusters, secrets);
  refuseTooLarge(parameters);
  if (planned.osType === null) return;
  const isChosen = opcode.osType !== undefined;
  // The present variant was accepted when it was chosen.
  const forceVariant = !isChosen || opcode.forceVariant === true;
  const { os, policy } = await selectOs(planned.osType, dependencies, { forceVariant });
  if (isChosen) refuseBlacklisted(planned.osType, policy);
  // Without safe install, an OS with scripts for the appliance could never be installed.
  if (isChosen && !planned.safeInstall)
    chooseCreateScripts(os.definition, { ...policy, isSafeInstall: false });
  const timeoutS = installTimeoutOf({}, planned, await clusters.load());
  await checkParametersByOs(os, policy, planned, parameters, hostCopies, { signal, timeoutS });
}

/** Returns the changed record. A parameter given in one visibility leaves the others. Pure. */
export function applyChanges(
  instance: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_SET_PARAMS'>,
): InstanceRecord {
  return {
    ...instance,
    ...definedOf(opcode, [
      'osType',
      'communication',
      'userData',
      'vendorData',
      'networkConfig',
      'runLists',
      'sshKeys',
      'installTimeoutS',
      'appliance',
      'profiles',
      'bootEnv',
    ]),
    ...mergePlainSettings('metadata', opcode, instance),
    ...mergePlainSettings('installation', opcode, instance),
    ...(opcode.hostKeys && { hostKeys: acceptHostKeys(instance, opcode.hostKeys) }),
    ...mergeImage(instance, opcode),
    ...mergePackage(instance, opcode),
    ...mergeOsParameters(instance, opcode),
    hooks: opcode.hooks === undefined ? instance.hooks : sortHooks(opcode.hooks),
    tags: mergeTags(opcode.tags ?? instance.tags, opcode),
    metadata: mergeChanges(instance.metadata, opcode.metadata),
    autostart: mergeSettings(instance.autostart, opcode.autostart ?? {}),
    beparams: {
      ...DEFAULT_BACKEND_PARAMETERS,
      ...mergeSettings(instance.beparams, opcode.beparams),
    },
    hvparams: mergeSettings(instance.hvparams, opcode.hvparams),
    installParameters: mergeSettings(instance.installParameters, opcode.installParameters ?? {}),
  };
}

/** Refuses new invalid tags. Tags that are older than the rule stay. Pure. */
export function refuseNewTags(before: readonly string[], after: readonly string[]): void {
  const wrong = after.find((tag) => !before.includes(tag) && !newTag.safeParse(tag).success);
  if (wrong === undefined) return;
  throw new AppError('VALIDATION', `--tags: '${wrong}': not a tag`, {
    hint: 'Use letters, digits and .+*/:@_-=, without spaces, at most 128 characters.',
  });
}

/** Returns the given keys that are set: an option that was not given changes nothing. */
function definedOf<T extends object, Key extends keyof T>(
  values: T,
  keys: readonly Key[],
): { [K in Key]?: Exclude<T[K], undefined> } {
  const entries = keys.filter((key) => values[key] !== undefined).map((key) => [key, values[key]]);
  // Each key has its own value; fromEntries loses the types.
  return Object.fromEntries(entries) as { [K in Key]?: Exclude<T[K], undefined> };
}
