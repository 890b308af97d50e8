import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { CommandFailure } from '../../failures/failure.ts';
import { formatFingerprint } from '../../render/host-keys.ts';
import { confirm } from '../../terminal/prompt.ts';
import { fromHere } from '../../values/host-path.ts';
import { parseList } from '../../values/key-values.ts';
import { readParameters, withoutUnset } from '../../values/os-parameters.ts';
import { parseSizeBytes } from '../../values/size.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import {
  composeInstallation,
  type InstallationOptions,
  type MetadataOptions,
  readBootChoice,
  readImage,
  readSwitches,
} from './add.ts';
import { refuseWaitWithout, waitReady, type WaitReadyOptions } from './wait-ready.ts';
import { type DiskChangeOptions, parseDiskChanges, parseNicChanges } from './part-changes.ts';
import {
  orTakenBack,
  readDocument,
  readHooks,
  readSshKeys,
  readUserData,
  RESET,
} from './parse-documents.ts';
import { readRunLists } from './run-lists.ts';
import {
  type OsParameterOptions,
  type OsParameters,
  parseAutostart,
  parseBackendParameters,
  parseHypervisorParameters,
  readOsParameters,
} from './parse-options.ts';

export interface ForceOptions extends SubmitOptions {
  readonly force?: boolean;
}

/**
 * Asks before something is lost, or trusted; off a terminal there is nobody to ask, and nothing is.
 * @throws AppError USAGE, NOT_CONFIRMED, INTERRUPTED
 */
export async function confirmLoss(
  context: Context,
  what: string,
  options: ForceOptions,
  hint = 'give --force if it is',
): Promise<void> {
  if (options.force || options.dryRun) return;
  if (!context.terminal.stdin.isTTY) {
    throw new AppError('USAGE', `${what} There is no terminal to ask whether that is meant`, {
      hint,
    });
  }
  if (await confirm(context, `${what} Continue?`)) return;
  throw new AppError('NOT_CONFIRMED', 'nothing was changed');
}

async function change(
  context: Context,
  opcode: OpcodeInput,
  options: SubmitOptions & WaitReadyOptions,
  done: string,
): Promise<void> {
  const job = await submitAndWatch(context, opcode, options);
  if (job === null) return;
  if (!options.json) context.note(done);
  if (options.waitReady !== undefined && 'name' in opcode)
    await waitReady(context, opcode.name, options.waitReady, options.degradedFails);
}

export interface ReinstallOptions extends InstallationOptions, ForceOptions, WaitReadyOptions {
  readonly keepOld?: boolean;
  readonly shutdownTimeout?: number;
}

/**
 * Who is meant by what was typed, to be shown in the question. What takes disks away without a
 * question wants the whole name: the same word may be somebody else's name the next time.
 * @throws AppError, CommandFailure
 */
async function wholeName(context: Context, typed: string, options: ForceOptions): Promise<string> {
  if (options.force || !context.terminal.stdin.isTTY) return typed;
  try {
    return (await (await context.client()).instance(typed)).name;
  } catch (error) {
    // It may be a machine without a record.
    if (error instanceof CommandFailure && error.code === 'INSTANCE_NOT_FOUND') return typed;
    throw error;
  }
}

export async function runReinstall(
  context: Context,
  typed: string,
  options: ReinstallOptions,
): Promise<void> {
  refuseWaitWithout(options, { '--no-start': options.start === false });
  const { keepOld, shutdownTimeout: shutdownTimeoutS } = options;
  const installation = await composeInstallation(context, options);
  const name = await wholeName(context, typed, options);
  // In scripts this word is enough, as it always was: an installation can be made again.
  if (context.terminal.stdin.isTTY)
    await confirmLoss(context, `This takes away what is on the disks of ${name}.`, options);
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REINSTALL',
    name,
    ...installation,
    ...{ keepOld, shutdownTimeoutS },
  };
  await change(context, opcode, options, `instance ${name} is installed again`);
}

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
  await change(context, opcode, options, `instance ${name} is modified`);
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

export async function runRemove(
  context: Context,
  typed: string,
  options: ForceOptions & { readonly shutdownTimeout?: number },
): Promise<void> {
  const name = await wholeName(context, typed, options);
  await confirmLoss(
    context,
    `This removes ${name} and its disks, and all data on them is lost.`,
    options,
  );
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REMOVE',
    name,
    shutdownTimeoutS: options.shutdownTimeout,
  };
  await change(context, opcode, options, `instance ${name} is removed`);
}

export async function runAdopt(
  context: Context,
  name: string,
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_ADOPT', name };
  await change(context, opcode, options, `${name} is an instance again`);
}

export async function runRename(
  context: Context,
  name: string,
  newName: string,
  options: SubmitOptions & { readonly installTimeout?: number },
): Promise<void> {
  const { installTimeout: installTimeoutS } = options;
  const opcode: OpcodeInput = { opcode: 'INSTANCE_RENAME', name, newName, installTimeoutS };
  await change(context, opcode, options, `instance ${name} is now ${newName}`);
}

export async function runCopyInstance(
  context: Context,
  name: string,
  newName: string,
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_COPY', name, newName };
  await change(context, opcode, options, `instance ${newName} is a copy of ${name}`);
}

/** `gnt-instance add-tags|remove-tags NAME TAGS...`. @throws AppError, CommandFailure */
export async function runTags(
  context: Context,
  name: string,
  tags: { readonly addTags: readonly string[] } | { readonly removeTags: readonly string[] },
  options: SubmitOptions,
): Promise<void> {
  const lists = Object.entries(tags).map(([key, list]) => [key, [...list]] as const);
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name },
    ...Object.fromEntries(lists),
  };
  await change(context, opcode, options, `tags of ${name} are changed`);
}

/** `gnt-instance run NAME SCRIPT`. @throws AppError, CommandFailure */
export async function runScript(
  context: Context,
  name: string,
  script: string,
  options: SubmitOptions & { readonly input?: readonly string[] },
): Promise<void> {
  const inputs = Object.fromEntries(
    (options.input ?? []).map((given) => {
      const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(given) ?? [];
      if (key !== undefined && value !== undefined)
        return [key, context.values.resolve('--input', value)];
      // What it is may be a secret.
      throw new AppError('USAGE', 'option --input: NAME=VALUE is expected', {
        hint: '--input NAME=@FILE takes the value from a file',
      });
    }),
  );
  const opcode: OpcodeInput = { opcode: 'INSTANCE_RUN_SCRIPT', name, script, inputs };
  await change(context, opcode, options, `script ${script} of ${name} has run`);
}

/** `gnt-instance grow-disk NAME DISK AMOUNT`. @throws AppError, CommandFailure */
export async function runGrowDisk(
  context: Context,
  name: string,
  { disk, amount }: { readonly disk: string; readonly amount: string },
  options: SubmitOptions & { readonly absolute?: boolean },
): Promise<void> {
  if (!/^\d{1,2}$/.test(disk)) {
    throw new AppError('USAGE', `'${disk}' is no number of a disk`, {
      hint: `0 is the first; gnt-instance info ${name} shows them`,
    });
  }
  const amountBytes = parseSizeBytes('AMOUNT', amount);
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_GROW_DISK', name, disk: Number(disk), amountBytes },
    absolute: options.absolute,
  };
  await change(context, opcode, options, `disk ${disk} of ${name} is larger`);
}

export async function runStartup(
  context: Context,
  name: string,
  options: SubmitOptions & WaitReadyOptions & { readonly osParametersSecret?: readonly string[] },
): Promise<void> {
  refuseWaitWithout(options);
  const { osParametersSecret } = options;
  const { secret } = readOsParameters(context, osParametersSecret ? { osParametersSecret } : {});
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_STARTUP',
    name,
    osParametersSecret: withoutUnset(secret),
  };
  await change(context, opcode, options, `instance ${name} is started`);
}

export async function runShutdown(
  context: Context,
  name: string,
  options: SubmitOptions & { readonly timeout?: number },
): Promise<void> {
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_SHUTDOWN',
    name,
    timeoutS: options.timeout,
  };
  await change(context, opcode, options, `instance ${name} is shut down`);
}

export async function runReboot(
  context: Context,
  name: string,
  options: SubmitOptions &
    WaitReadyOptions & {
      readonly type?: 'soft' | 'hard' | 'full';
      readonly shutdownTimeout?: number;
    },
): Promise<void> {
  refuseWaitWithout(options);
  const opcode: OpcodeInput = {
    opcode: 'INSTANCE_REBOOT',
    name,
    kind: options.type,
    timeoutS: options.shutdownTimeout,
  };
  await change(context, opcode, options, `instance ${name} is rebooted`);
}
