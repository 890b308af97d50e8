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
  type DocumentOption,
  isUnset,
  orUnset,
  readDocument,
  readHooks,
  readSshKeys,
  readUserData,
  warnOfSilence,
} from './parse-documents.ts';
import {
  type OsParameterOptions,
  type OsParameters,
  parseAutostart,
  parseBackendParameters,
  parseHypervisorParameters,
  readOsParameters,
  readPlain,
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
  /** Seconds, or `none`. */
  readonly installTimeout?: string;
  readonly autostart?: readonly string[];
  readonly backendParameters?: readonly string[];
  readonly hypervisorParameters?: readonly string[];
  readonly acceptHostKeys?: boolean;
  readonly acceptFingerprint?: readonly string[];
  readonly net?: readonly string[];
}

type Modify = Extract<OpcodeInput, { opcode: 'INSTANCE_SET_PARAMS' }>;

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
      hint: 'gnt-instance modify --help',
    });
  }
  const opcode: Modify = {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name, ...changes },
    ...(disks.length > 0 && { disks: [...disks] }),
    ...(options.net && { nics: [...parseNicChanges(options.net, context.values)] }),
  };
  if (removed !== undefined) {
    const which = removed.which === -1 ? 'the last disk' : `disk ${removed.which}`;
    await confirmLoss(context, `This removes ${which} of ${name} and all data on it.`, options);
  }
  await warnOfSilentChange(context, opcode);
  await submitChange(context, opcode, options, `instance ${name} modified`);
}

/**
 * Warns of new documents that keep cloud-init from reporting its boot under the instance's
 * settings.
 */
async function warnOfSilentChange(context: Context, changes: Modify): Promise<void> {
  // Most documents are fine under any settings, which saves a request.
  const strictest = { ...changes, communication: true, hvparams: {} };
  if (warnOfSilence(strictest, { warn: () => undefined }) === null) return;
  const { name } = changes;
  const client = await context.client();
  const { communication, hvparams } = await client.ask('GET /v1/instances/{name}', { name });
  const bootReport = changes.hvparams?.boot_report;
  warnOfSilence(
    {
      ...changes,
      communication: changes.communication ?? communication,
      hvparams: { boot_report: bootReport === undefined ? hvparams.boot_report : bootReport },
    },
    context,
  );
}

/**
 * Returns the host keys to accept: exactly those shown here, even if the guest reports others
 * before the job runs.
 * @throws AppError SSH_HOST_KEYS, USAGE, NOT_CONFIRMED
 */
async function acceptedHostKeys(
  context: Context,
  name: string,
  options: ModifyOptions,
): Promise<{ readonly hostKeys?: string[]; readonly instanceId?: string }> {
  const { acceptHostKeys, acceptFingerprint: named } = options;
  if (!acceptHostKeys && named === undefined) return {};
  const client = await context.client();
  const { ssh, instanceId } = await client.ask('GET /v1/instances/{name}', { name });
  const hostKeys =
    named === undefined ? ssh.saidHostKeys : chooseHostKeys(name, ssh.saidHostKeys, named);
  if (hostKeys.length === 0) {
    throw new AppError('SSH_HOST_KEYS', `the guest of ${name} has reported no SSH host keys`, {
      hint: `cloud-init reports them at the end of a boot with -C yes: gnt-instance info ${name}`,
    });
  }
  const shown = hostKeys.map(formatFingerprint).join(', ');
  if (named === undefined) {
    const question = `This trusts these SSH host keys of ${name}: ${shown}.`;
    const hint = `gnt-instance modify --accept-fingerprint SHA256:… ${name}, once per key, or --force`;
    await confirmLoss(context, question, options, hint);
  }
  context.note(`accepting ${shown}`);
  return { hostKeys, instanceId };
}

/** @throws AppError SSH_HOST_KEYS for a fingerprint without a key */
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
      `the guest of ${name} has reported no SSH host key with the fingerprint '${fingerprint}'`,
      { hint: `Reported: ${said.map(formatFingerprint).join(', ') || 'none'}` },
    );
  });
}

function hasChanges(changes: Readonly<Record<string, unknown>>): boolean {
  return Object.values(changes).some(
    (value) =>
      value === null ||
      // An empty list replaces the stored one.
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
    osType: orUnset(options.osType),
    forceVariant: options.forceVariant,
    ...(await readImage(context, options)),
    osImageFormat: options.imageFormat,
    osImageGrow: options.osImageGrow,
    osParameters: parameters.public,
    osParametersPrivate: parameters.private,
    osParametersSecret: parameters.secret,
    ...readSwitches(options),
    ...composeDocumentChanges(context, options),
    tags: options.tags === undefined ? undefined : [...parseList(orUnset(options.tags) ?? '')],
    autostart: parseAutostart(options.autostart, values),
    beparams: parseBackendParameters(options.backendParameters ?? [], values),
    hvparams: parseHypervisorParameters('-H', options.hypervisorParameters ?? [], values),
    installParameters:
      installParameters &&
      parseHypervisorParameters('--install-parameters', installParameters, values),
    personalizationPackage: unsettable(
      '--personalization-package',
      personalizationPackage,
      context,
      (given) => fromHere(values.resolve('--personalization-package', given)),
    ),
    personalizationChecksum: orUnset(options.personalizationChecksum, (given) =>
      values.resolve('--personalization-checksum', given).toLowerCase(),
    ),
    hooks: hooks && readHooks(hooks, context),
    installTimeoutS: readTimeout(options.installTimeout, context),
    ...readPlain('installation', options),
    appliance: orUnset(options.appliance),
    ...readBootChoice(options),
  };
}

function composeDocumentChanges(context: Context, options: ModifyOptions) {
  const { values } = context;
  const { userData, vendorData, networkConfig, sshKey } = options;
  const document = (option: DocumentOption, given: string | undefined) =>
    unsettable(option, given, context, (file) => readDocument(option, file, context));
  const isAlone = (option: string, files: readonly string[]): boolean =>
    files.length === 1 && isUnset(option, files[0] ?? '', context);
  const metadata = { option: '--metadata', texts: options.metadata ?? [] };
  return {
    runLists: readRunLists(options, context),
    userData:
      userData && (isAlone('--user-data', userData) ? null : readUserData(userData, context)),
    vendorData: document('--vendor-data', vendorData),
    networkConfig: document('--network-config', networkConfig),
    sshKeys: sshKey && (isAlone('--ssh-key', sshKey) ? [] : [...readSshKeys(sshKey, values)]),
    metadata: readParameters(metadata, values).values,
  };
}

/** @throws AppError USAGE */
function readTimeout(given: string | undefined, context: Context): number | null | undefined {
  if (given === undefined) return undefined;
  if (isUnset('--install-timeout', given, context)) return null;
  if (/^\d{1,9}$/.test(given)) return Number(given);
  throw new AppError('USAGE', `option --install-timeout: '${given}' is not a number of seconds`, {
    hint: 'Write a number; 0 is no limit, none is the limit of the cluster',
  });
}

/** Returns null for a value that unsets the stored one, and undefined for no value. */
function unsettable(
  option: string,
  given: string | undefined,
  context: Context,
  read: (given: string) => string,
): string | null | undefined {
  if (given === undefined) return undefined;
  return isUnset(option, given, context) ? null : read(given);
}
