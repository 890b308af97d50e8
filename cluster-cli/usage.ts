import { type Command, CommanderError, Option } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { Absence } from './help/absent-commands.ts';
import { hasSensitiveArguments } from './arguments.ts';
import { keysOf } from './completion/command.ts';
import { formatKeys } from './help/keys.ts';
import { countAdvanced, formatExtras, layoutHelp, showWhole } from './help/layout.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { ownValue } from '#shared/json/own-value.ts';

interface Output {
  readonly write: (text: string) => void;
  readonly columns: number;
}

/** Makes commander throw instead of ending the process, and print only help. */
export function prepareForUse(command: Command, output: Output): void {
  command
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: output.write,
      // errorOfUsage reports errors. Drop commander's own text and the help after an error.
      writeErr: () => undefined,
      getOutHelpWidth: () => output.columns,
      getErrHelpWidth: () => output.columns,
    })
    .configureHelp(layoutHelp(output.columns))
    .addHelpText('after', () => formatExtras(command, output.columns));
  addHelpAll(command);
  addKeyHelp(command, output);
  refuseOpposites(command);
  for (const subcommand of command.commands) prepareForUse(subcommand, output);
}

/** Adds `--help-all`, which also shows the options that `--help` omits. */
function addHelpAll(command: Command): void {
  const more = countAdvanced(command);
  const option = new Option('--help-all', `Show all options, ${more} more`).helpGroup('Other:');
  command.addOption(more === 0 ? option.hideHelp() : option);
  command.on('option:help-all', () => {
    showWhole(command);
    command.outputHelp();
    throw helpShown();
  });
}

/** Adds `--net help`, which shows the keys of an option. */
function addKeyHelp(command: Command, { write, columns }: Output): void {
  for (const option of command.options) {
    const keyed = keysOf(option);
    if (keyed === undefined) continue;
    command.on(`option:${option.name()}`, (value: string) => {
      if (value !== 'help') return;
      write(`${formatKeys(option.long ?? option.flags, keyed, columns).join('\n')}\n`);
      throw helpShown();
    });
  }
}

function helpShown(): CommanderError {
  return new CommanderError(0, 'commander.helpDisplayed', '(outputHelp)');
}

/** Refuses `--WORD` together with `--no-WORD`. commander would use the last one. */
function refuseOpposites(command: Command): void {
  const given = new Map<string, string>();
  for (const option of command.options) {
    const name = option.attributeName();
    const flag = option.long ?? option.flags;
    command.on(`option:${option.name()}`, () => {
      const other = given.get(name) ?? flag;
      if (other !== flag) command.error(`error: '${other}' and '${flag}' exclude each other`);
      given.set(name, flag);
    });
  }
}

/**
 * Refuses an unknown command with `--help`. Commander would show the program's help without an
 * error.
 * @throws CommanderError as for the command without `--help`
 */
export function refuseUnknownCommand(root: Command, argv: readonly string[]): void {
  const word = namedCommand(argv);
  if (word === undefined || word.startsWith('-') || word === 'help') return;
  const isKnown = root.commands.some((command) => isCalled(command, word));
  if (isKnown || root.commands.length === 0) return;
  throw new CommanderError(2, 'commander.unknownCommand', `error: unknown command '${word}'`);
}

/** Returns the command of the arguments; of `help add`, `add`. */
function namedCommand([word, next]: readonly string[]): string | undefined {
  return word === 'help' ? next : word;
}

/** Tells whether commander ended with success: it printed help or the version. */
export function isHelpShown(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

/** Returns the error for a refusal of commander, or null for another error. */
export async function errorOfUsage(
  error: unknown,
  root: Command | null,
  argv: readonly string[],
): Promise<AppError | null> {
  if (!(error instanceof CommanderError) || root === null) return null;
  const program = root.name();
  const helpHint = [program, subcommandIn(argv), '--help'].filter(Boolean).join(' ');
  if (error.code === 'commander.help' || error.code === 'commander.helpDisplayed') {
    return new AppError('USAGE', `${program}: a command is missing`, { hint: helpHint });
  }
  const [first = ''] = error.message.replace(/^error: /, '').split('\n');
  const message = withoutValues(first, argv);
  const near = suggestFor(message, root, argv);
  if (error.code === 'commander.unknownCommand') {
    const word = namedCommand(argv) ?? '';
    const { findAbsence } = await import('./help/absent-commands.ts');
    const absence = findAbsence(program, word);
    if (absence !== undefined) return errorOfAbsence(`${program} ${word}`, absence);
    const meant = elsewhere(message, root);
    if (meant !== null) return new AppError('USAGE', message, { hint: meant });
    const help = near ? `Did you mean ${near}?` : `${program} --help`;
    return new AppError('USAGE', message, { hint: help });
  }
  if (error.code === 'commander.excessArguments' && !hasSensitiveArguments(argv)) {
    const command = root.commands.find((each) => isCalled(each, argv[0]));
    const [only, ...others] = command?.registeredArguments ?? [];
    if (command !== undefined && only?.name() === 'name' && others.length === 0)
      return new AppError('USAGE', `${command.name()} takes one name at a time`, {
        hint: `for name in A B; do ${program} ${command.name()} "$name"; done`,
      });
  }
  const known = [...OF_OPTIONS, ...OTHERS_OPTIONS].find(([option]) =>
    message.includes(option),
  )?.[1];
  return new AppError('USAGE', message, {
    hint: near ? `Did you mean ${near}?` : (known ?? helpHint),
  });
}

function errorOfAbsence(command: string, [reason, hint]: Absence): AppError {
  return new AppError('COMMAND_ABSENT', `${command} does not exist in gnt: ${reason}`, { hint });
}

/** Commands of incus, multipass, virsh and docker, and our closest ones. */
const OTHERS_COMMANDS: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  ps: ['list'],
  create: ['add', 'launch'],
  new: ['add', 'launch'],
  init: ['add'],
  define: ['add'],
  run: ['launch'],
  delete: ['remove'],
  del: ['remove'],
  rm: ['remove'],
  destroy: ['remove', 'stop'],
  purge: ['remove'],
  undefine: ['remove'],
  show: ['info'],
  get: ['info'],
  dominfo: ['info'],
  describe: ['info'],
  status: ['info', 'list'],
  restart: ['reboot'],
  poweroff: ['stop'],
  halt: ['stop'],
  shell: ['ssh'],
  login: ['ssh'],
  mv: ['rename'],
  clone: ['copy'],
  cp: ['copy', 'push', 'pull'],
  transfer: ['push', 'pull'],
  file: ['push', 'pull'],
  rebuild: ['reinstall'],
  resize: ['grow-disk'],
  edit: ['modify'],
  set: ['modify'],
  config: ['modify', 'info'],
  restore: ['restore-snapshot'],
  snapshots: ['list-snapshots'],
  attach: ['modify', 'connect'],
  detach: ['modify', 'disconnect'],
  logs: ['log'],
};

/** Returns a hint with the commands for a word of another program, or null. */
function elsewhere(message: string, root: Command): string | null {
  const [, word = ''] = /^unknown command '([^']*)'$/.exec(message) ?? [];
  const isHere = (name: string): boolean => root.commands.some((each) => isCalled(each, name));
  const words = (ownValue(OTHERS_COMMANDS, word) ?? []).filter(isHere);
  if (words === undefined || words.length === 0) return null;
  return `use ${words.map((name) => `${root.name()} ${name}`).join(' or ')}`;
}

/** Options of other programs, and the hints for them. */
const OTHERS_OPTIONS: readonly (readonly [option: string, hint: string])[] = [
  ["unknown option '--format'", 'Use --json, or -o FIELDS with --separator'],
  ["unknown option '--yes'", 'Use --force'],
  ["unknown option '--cloud-init'", 'Use --user-data FILE'],
  ["unknown option '--image'", 'Use --os-image NAME, PATH or URL'],
  ["unknown option '--memory'", 'Use -B memory=2G'],
  ["unknown option '--ram'", 'Use -B memory=2G'],
  ["unknown option '--cpus'", 'Use -B vcpus=2'],
  ["unknown option '--vcpus'", 'Use -B vcpus=2'],
  ["unknown option '--disk-size'", 'Use -s 10G'],
  [
    "unknown option '--network'",
    'Use --net 0:network=NAME,ip=pool; gnt-network list shows the networks',
  ],
  ["unknown option '--name'", 'The name is the last argument, without an option'],
];

/** Hints for values of other programs. */
const OF_OPTIONS: readonly (readonly [option: string, hint: string])[] = [
  [
    "--disk-template <template>' argument",
    'Use plain for LVM (thin volumes: gnt-cluster modify --vg-name GROUP/POOL) and zfs for ZFS; DRBD and Ceph are not supported',
  ],
];

/**
 * Removes values from a message. An unknown option is quoted with its attached value, which may be
 * a secret of a misspelled option. Excess arguments may be parts of a wrongly quoted secret.
 */
function withoutValues(message: string, argv: readonly string[]): string {
  const named = message.replace(/^(unknown option '[^'=]*)=[^]*'$/, "$1'");
  return hasSensitiveArguments(argv)
    ? named.replace(/^(too many .* but got \d+): .*$/s, '$1.')
    : named;
}

function suggestFor(message: string, root: Command, argv: readonly string[]): string | null {
  const [, kind, word = ''] = /^unknown (option|command) '([^']*)'$/.exec(message) ?? [];
  if (kind === 'command') {
    return suggest(
      word,
      root.commands.flatMap((command) => [command.name(), ...command.aliases()]),
    );
  }
  const command = root.commands.find((each) => isCalled(each, argv[0]));
  const flags = [...(command ?? root).options.flatMap(({ long }) => long ?? []), '--help'];
  return kind === 'option' ? suggest(word, flags) : null;
}

function isCalled(command: Command, word = ''): boolean {
  return command.name() === word || command.aliases().includes(word);
}

function subcommandIn(argv: readonly string[]): string | undefined {
  const [first] = argv;
  return first !== undefined && /^[a-z][a-z-]*$/.test(first) ? first : undefined;
}
