import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import type { PlainKey } from '#shared/contract/parameter-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { fromHere } from '../../values/host-path.ts';
import { parseList } from '../../values/key-values.ts';
import { readParameters, withoutUnset } from '../../values/os-parameters.ts';
import { readPackagePassword } from '../secrets.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { readRunLists, type RunListOptions } from './run-lists.ts';
import { refuseWaitWithout, waitReady, type WaitReadyOptions } from './wait-ready.ts';
import { chooseImage, refuseSmallDisk } from './named-image.ts';
import {
  type DocumentOption,
  orUnset,
  readDocument,
  readHooks,
  readSshKeys,
  readUserData,
  warnOfSilence,
} from './parse-documents.ts';
import {
  type DiskInput,
  type DiskOptions,
  type OsParameterOptions,
  parseAutostart,
  parseBackendParameters,
  parseDisks,
  parseHypervisorParameters,
  parseNics,
  type PlainOptions,
  readOsParameters,
  readPlain,
} from './parse-options.ts';

/** Options of add and reinstall. */
export interface InstallationOptions extends OsParameterOptions, PlainOptions<'installation'> {
  readonly osType?: string;
  readonly forceVariant?: boolean;
  readonly osImage?: string;
  readonly osImageChecksum?: string;
  readonly imageFormat?: ImageFormatName | 'auto';
  readonly osImageGrow?: boolean;
  readonly personalizationPackage?: string;
  readonly personalizationChecksum?: string;
  readonly personalizationUser?: string;
  readonly personalizationPassword?: string;
  readonly enableSafeInstall?: boolean;
  readonly installParameters?: readonly string[];
  readonly appliance?: string;
  readonly bootenv?: string;
  readonly profiles?: string;
  readonly hooks?: readonly string[];
  /** Seconds. */
  readonly installTimeout?: number;
  /** commander's name of `--no-start`, inverted. */
  readonly start: boolean;
}

/** Options of the metadata. */
export interface MetadataOptions extends RunListOptions, PlainOptions<'metadata'> {
  readonly communication?: boolean;
  readonly c?: boolean;
  readonly userData?: readonly string[];
  readonly vendorData?: string;
  readonly networkConfig?: string;
  readonly sshKey?: readonly string[];
  readonly metadata?: readonly string[];
  readonly tags?: string;
}

export interface AddOptions
  extends InstallationOptions, MetadataOptions, DiskOptions, SubmitOptions, WaitReadyOptions {
  readonly net?: readonly string[];
  readonly nics: boolean;
  readonly backendParameters?: readonly string[];
  readonly hypervisorParameters?: readonly string[];
  readonly node?: string;
  readonly autostart?: readonly string[];
  readonly install: boolean;
  readonly onFailure?: 'keep' | 'remove';
}

export async function runAdd(context: Context, name: string, options: AddOptions): Promise<void> {
  refuseWaitWithout(options, {
    '--no-start': !options.start,
    '--no-install': !options.install,
  });
  const opcode = await composeAdd(context, name, options);
  const silence = warnOfSilence(opcode, context);
  const job = await submitAndWatch(context, opcode, options);
  if (job === null) return;
  if (options.waitReady === undefined) {
    if (!options.json) context.note(`instance ${name} created`);
    return;
  }
  await waitReady(context, name, options.waitReady, options.degradedFails, silence);
}

export async function composeAdd(
  context: Context,
  name: string,
  options: AddOptions,
): Promise<Create> {
  const { values } = context;
  // A watched job logs this line.
  if (!options.install && options.start && (options.submit || options.dryRun)) {
    context.note('No-installation mode selected, disabling startup');
  }
  const metadata = readMetadata(context, options);
  const backend = options.backendParameters ?? [];
  const hypervisor = options.hypervisorParameters ?? [];
  const disks = [...parseDisks(options, values)];
  return {
    opcode: 'INSTANCE_CREATE',
    name,
    ...withoutResets(await composeInstallation(context, options, disks)),
    ...metadata,
    diskTemplate: options.diskTemplate,
    disks,
    nics: readNics(context, options),
    beparams: withoutUnset(parseBackendParameters(backend, values)),
    hvparams: withoutUnset(parseHypervisorParameters('-H', hypervisor, values)),
    node: options.node,
    autostart: parseAutostart(options.autostart, values),
    install: options.install,
    onFailure: options.onFailure,
    start: options.start && options.install,
  };
}

function readNics(context: Context, options: AddOptions) {
  const given = options.net ?? [];
  if (!options.nics && given.length > 0) {
    throw new AppError('USAGE', '--net and --no-nics exclude each other');
  }
  return [...parseNics(given, context.values)];
}

type Create = Extract<OpcodeInput, { opcode: 'INSTANCE_CREATE' }>;
type Reinstall = Extract<OpcodeInput, { opcode: 'INSTANCE_REINSTALL' }>;
type Parameters = NonNullable<Reinstall['osParameters']>;
type Personalization = 'personalizationUser' | 'personalizationPassword' | 'hooks';
type OfRun = 'installTimeoutS' | 'profiles' | PlainKey<'installation'>;
type TakenBack =
  | 'osType'
  | 'osImage'
  | 'osImageChecksum'
  | 'personalizationPackage'
  | 'personalizationChecksum'
  | 'appliance'
  | 'bootEnv';

interface Installation
  extends
    Pick<Create, 'osImageFormat' | 'osImageGrow' | 'safeInstall'>,
    Pick<Create, 'forceVariant'>,
    Pick<Create, Personalization | OfRun | 'start'>,
    Pick<Reinstall, 'installParameters' | TakenBack> {
  readonly osParameters: Parameters;
  readonly osParametersPrivate: Parameters;
  readonly osParametersSecret: Parameters;
}

/**
 * Refuses resets: a new instance has no stored value to unset.
 * @throws AppError USAGE
 */
function withoutResets({ installParameters, ...installation }: Installation) {
  const {
    osType,
    osImage,
    osImageChecksum,
    personalizationPackage,
    personalizationChecksum,
    ...others
  } = installation;
  const { appliance, bootEnv, ...rest } = others;
  return {
    ...rest,
    osType: notUnset('--os-type', osType),
    osImage: notUnset('--os-image', osImage),
    osImageChecksum: notUnset('--os-image-checksum', osImageChecksum),
    personalizationPackage: notUnset('--personalization-package', personalizationPackage),
    personalizationChecksum: notUnset('--personalization-checksum', personalizationChecksum),
    appliance: notUnset('--appliance', appliance),
    bootEnv: notUnset('--bootenv', bootEnv),
    installParameters: installParameters && withoutUnset(installParameters),
    osParameters: withoutUnset(installation.osParameters),
    osParametersPrivate: withoutUnset(installation.osParametersPrivate),
    osParametersSecret: withoutUnset(installation.osParametersSecret),
  };
}

function notUnset(option: string, value: string | null | undefined): string | undefined {
  if (value !== null) return value;
  throw new AppError('USAGE', `${option} none unsets a stored value, and a new instance has none`, {
    hint: `Omit ${option}`,
  });
}

/** Returns the parameters of add and reinstall; `null` unsets a stored value. */
export async function composeInstallation(
  context: Context,
  options: InstallationOptions,
  disks: readonly DiskInput[] = [],
): Promise<Installation> {
  const { values } = context;
  const scalar = (option: string, value: string | undefined) =>
    value === undefined ? undefined : values.resolve(option, value);
  const parameters = readOsParameters(context, options);
  const personalizationPackage = orUnset(
    scalar('--personalization-package', options.personalizationPackage),
    fromHere,
  );
  const personalizationChecksum = orUnset(
    scalar('--personalization-checksum', options.personalizationChecksum),
  );
  const personalizationUser = scalar('--personalization-user', options.personalizationUser);
  const personalizationPassword = await readPackagePassword(context, options);
  const install =
    options.installParameters &&
    parseHypervisorParameters('--install-parameters', options.installParameters, values);
  return {
    osType: orUnset(options.osType),
    forceVariant: options.forceVariant,
    ...(await readImage(context, options, disks)),
    osImageFormat: options.imageFormat,
    osImageGrow: options.osImageGrow,
    personalizationPackage,
    personalizationChecksum: personalizationChecksum && personalizationChecksum.toLowerCase(),
    personalizationUser,
    personalizationPassword,
    safeInstall: options.enableSafeInstall,
    installParameters: install,
    hooks: options.hooks && readHooks(options.hooks, context),
    installTimeoutS: options.installTimeout,
    ...readPlain('installation', options),
    appliance: orUnset(options.appliance),
    ...readBootChoice(options),
    osParameters: parameters.public,
    osParametersPrivate: parameters.private,
    osParametersSecret: parameters.secret,
    start: options.start,
  };
}

/** Returns the boot environment and profiles of add, reinstall and modify; `none` unsets them. */
export function readBootChoice({
  bootenv,
  profiles,
}: Pick<InstallationOptions, 'bootenv' | 'profiles'>): Pick<Installation, 'bootEnv' | 'profiles'> {
  const named = profiles === undefined ? undefined : orUnset(profiles);
  return {
    bootEnv: orUnset(bootenv),
    ...(named !== undefined && { profiles: named === null ? [] : [...parseList(named)] }),
  };
}

/** Returns the image of add, reinstall and modify. */
export async function readImage(
  context: Context,
  options: Pick<InstallationOptions, 'osImage' | 'osImageChecksum'>,
  disks: readonly DiskInput[] = [],
): Promise<Pick<Installation, 'osImage' | 'osImageChecksum'>> {
  const scalar = (option: string, value: string | undefined) =>
    value === undefined ? undefined : context.values.resolve(option, value);
  const given = orUnset(scalar('--os-image', options.osImage));
  const chosen = given == null ? undefined : await chooseImage(context, given);
  if (chosen !== undefined) refuseSmallDisk(given ?? '', chosen, disks);
  const checksum = orUnset(scalar('--os-image-checksum', options.osImageChecksum));
  const osImageChecksum = checksum === undefined ? chosen?.checksum : checksum;
  return {
    osImage: chosen?.source ?? given,
    osImageChecksum: osImageChecksum && osImageChecksum.toLowerCase(),
  };
}

/** Returns the metadata of add and modify. */
export function readMetadata(
  context: Context,
  options: MetadataOptions,
): Pick<
  Create,
  | Switch
  | 'runLists'
  | 'userData'
  | 'vendorData'
  | 'networkConfig'
  | 'sshKeys'
  | 'metadata'
  | 'tags'
> {
  const { values } = context;
  const userData = readUserData(options.userData ?? [], context);
  const document = (option: DocumentOption, file: string | undefined): string | undefined =>
    file === undefined ? undefined : readDocument(option, file, context);
  const metadata = readParameters(
    { option: '--metadata', texts: options.metadata ?? [] },
    values,
  ).values;
  return {
    ...readSwitches(options),
    userData: userData ?? undefined,
    runLists: readRunLists(options, context) ?? undefined,
    vendorData: document('--vendor-data', options.vendorData),
    networkConfig: document('--network-config', options.networkConfig),
    sshKeys: options.sshKey && [...readSshKeys(options.sshKey, values)],
    metadata: withoutUnset(metadata),
    tags: options.tags === undefined ? undefined : [...parseList(options.tags)],
  };
}

type Switch = 'communication' | PlainKey<'metadata'>;

export function readSwitches(options: MetadataOptions): Pick<Create, Switch> {
  if (options.c !== undefined && options.communication !== undefined) {
    throw new AppError('USAGE', 'options -c and -C are the same');
  }
  return {
    communication: options.communication ?? options.c,
    ...readPlain('metadata', options),
  };
}
