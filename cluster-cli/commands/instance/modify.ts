import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { formatFingerprint } from '../../render/host-keys.ts';
import type { Context } from '../../terminal/context.ts';
import { fromHere } from '../../values/host-path.ts';
import { parseList } from '../../values/key-values.ts';
import { readParameters } from '../../values/os-parameters.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import {
  type InstallationOptions,
  type MetadataOptions,
  readBootChoice,
  readImage,
  readSwitches,
} from './add.ts';
import {
  orTakenBack,
  readDocument,
  readHooks,
  readSshKeys,
  readUserData,
  RESET,
} from './parse-documents.ts';
import {
  type OsParameterOptions,
  type OsParameters,
  parseAutostart,
  parseBackendParameters,
  parseHypervisorParameters,
  readOsParameters,
} from './parse-options.ts';
import { type DiskChangeOptions, parseDiskChanges, parseNicChanges } from './part-changes.ts';
import { readRunLists } from './run-lists.ts';
import { submitChange, wholeName } from './submit-change.ts';

export interface ModifyOptions
  extends
    Omit<InstallationOptions, 'start' | 'installTimeout'>,
    MetadataOptions,
    OsParameterOptions,
    DiskChangeOptions,
    ForceOptions {
  /** Seconds, or `default`. */
  readonly installTimeout?: string;
  readonly autostart?: readonly string[];
  readonly backendParameters?: readonly string[];
  readonly hypervisorParameters?: readonly string[];
  readonly acceptHostKeys?: boolean;
  readonly acceptFingerprint?: readonly string[];
  readonly net?: readonly string[];
}

export async function runModify(
  context: Context,
  typed: string,
  options: ModifyOptions,
): Promise<void> {
  const disks = parseDiskChanges(options, context.values);
  const removed = disks.find((one) => one.action === 'remove');
  const name = removed === undefined ? typed : await wholeName(context, typed, options);
  const changes = {
    ...(await composeChanges(context, options)),
    ...(await acceptedHostKeys(context, name, options)),
  };
  if (!hasChanges(changes) && disks.length === 0 && options.net === undefined) {
    throw new AppError('USAGE', 'Please give at least one of the parameters.', {
      hint: 'see: gnt-instance modify --help',
    });
  }
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name, ...changes },
    ...(disks.length > 0 && { disks: [...disks] }),
    ...(options.net && { nics: [...parseNicChanges(options.net, context.values)] }),
  };
  if (removed !== undefined) {
    const which = removed.which === -1 ? 'the last disk' : `disk ${removed.which}`;
    await confirmLoss(context, `This takes ${which} of ${name}, with all that is on it.`, options);
  }
  await submitChange(context, opcode, options, `instance ${name} is modified`);
  if (changes.communication !== undefined && !options.submit && !options.dryRun) {
    context.note('a running instance needs a restart of its machine for the channel to change');
  }
}

/**
 * The very keys that are shown here, of this installation, whatever the guest says by the time in
 * which the job runs.
 * @throws AppError SSH_HOST_KEYS, USAGE, NOT_CONFIRMED
 */
async function acceptedHostKeys(
  context: Context,
  name: string,
  options: ModifyOptions,
): Promise<{ readonly hostKeys?: string[]; readonly instanceId?: string }> {
  const { acceptHostKeys, acceptFingerprint: named } = options;
  if (!acceptHostKeys && named === undefined) return {};
  const { ssh, instanceId } = await (await context.client()).instance(name);
  const hostKeys =
    named === undefined ? ssh.saidHostKeys : chooseHostKeys(name, ssh.saidHostKeys, named);
  if (hostKeys.length === 0) {
    throw new AppError('SSH_HOST_KEYS', `the guest of ${name} says no SSH host keys`, {
      hint: 'it says them at the end of its boot, when cloud-init is asked to tell it',
    });
  }
  const shown = hostKeys.map(formatFingerprint).join(', ');
  if (named === undefined) {
    const question = `Whoever has these SSH host keys is ${name} from now on: ${shown}.`;
    const hint = 'give --accept-fingerprint SHA256:… of each key that is meant, or --force';
    await confirmLoss(context, question, options, hint);
  }
  context.note(`accepting ${shown}`);
  return { hostKeys, instanceId };
}

/** @throws AppError SSH_HOST_KEYS with a fingerprint that none of them has */
function chooseHostKeys(
  name: string,
  said: readonly string[],
  fingerprints: readonly string[],
): string[] {
  return fingerprints.map((fingerprint) => {
    const found = said.find((key) => formatFingerprint(key).split(' ')[1] === fingerprint);
    if (found !== undefined) return found;
    throw new AppError(
      'SSH_HOST_KEYS',
      `the guest of ${name} says no SSH host key with the fingerprint '${fingerprint}'`,
      { hint: `it says ${said.map(formatFingerprint).join(', ') || 'none'}` },
    );
  });
}

function hasChanges(changes: Readonly<Record<string, unknown>>): boolean {
  return Object.values(changes).some(
    (value) =>
      value === null ||
      // An empty list is in place of what is stored.
      Array.isArray(value) ||
      (typeof value === 'object'
        ? Object.values(value).some((each) => each !== undefined)
        : value !== undefined),
  );
}

async function composeChanges(context: Context, options: ModifyOptions) {
  const { values } = context;
  const parameters: OsParameters = readOsParameters(context, options);
  const { installParameters, personalizationPackage, hooks } = options;
  return {
    osType: orTakenBack(options.osType),
    forceVariant: options.forceVariant,
    ...(await readImage(context, options)),
    osImageFormat: options.imageFormat,
    osImageGrow: options.osImageGrow,
    osParameters: parameters.public,
    osParametersPrivate: parameters.private,
    osParametersSecret: parameters.secret,
    ...readSwitches(options),
    ...composeDocumentChanges(context, options),
    tags: options.tags === undefined ? undefined : [...parseList(options.tags)],
    autostart: parseAutostart(options.autostart, values),
    beparams: parseBackendParameters(options.backendParameters ?? [], values),
    hvparams: parseHypervisorParameters('-H', options.hypervisorParameters ?? [], values),
    installParameters:
      installParameters &&
      parseHypervisorParameters('--install-parameters', installParameters, values),
    personalizationPackage: resettable(personalizationPackage, (given) =>
      orTakenBack(given, (source) => fromHere(values.resolve('--personalization-package', source))),
    ),
    personalizationChecksum: orTakenBack(options.personalizationChecksum, (given) =>
      values.resolve('--personalization-checksum', given).toLowerCase(),
    ),
    hooks: hooks && readHooks(hooks, values),
    installTimeoutS: readTimeout(options.installTimeout),
    mediumSuccess: options.mediumSuccess,
    appliance: orTakenBack(options.appliance),
    ...readBootChoice(options),
  };
}

function composeDocumentChanges(context: Context, options: ModifyOptions) {
  const { values } = context;
  const { userData, vendorData, networkConfig, sshKey } = options;
  const document = (option: string, given: string | undefined): string | null | undefined =>
    resettable(given, (file) => readDocument(option, file, context));
  const isUserDataReset = userData?.length === 1 && userData[0] === RESET;
  const metadata = { option: '--metadata', texts: options.metadata ?? [] };
  return {
    runLists: readRunLists(options, context),
    userData: userData && (isUserDataReset ? null : readUserData(userData, context)),
    vendorData: document('--vendor-data', vendorData),
    networkConfig: document('--network-config', networkConfig),
    sshKeys: sshKey && (sshKey[0] === RESET ? [] : [...readSshKeys(sshKey, values)]),
    metadata: readParameters(metadata, values).values,
  };
}

/** @throws AppError USAGE */
function readTimeout(given: string | undefined): number | null | undefined {
  if (given === undefined) return undefined;
  if (given === RESET) return null;
  if (/^\d{1,9}$/.test(given)) return Number(given);
  throw new AppError('USAGE', `option --install-timeout: '${given}' is no number of seconds`, {
    hint: `0 is no limit, ${RESET} the cluster's`,
  });
}

/** `null` resets what is stored; undefined leaves it. */
function resettable(
  given: string | undefined,
  read: (given: string) => string | null | undefined,
): string | null | undefined {
  if (given === undefined) return undefined;
  return given === RESET ? null : read(given);
}
