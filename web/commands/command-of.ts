import type { Schemas } from '../../client/api-client.ts';
import { CommandWords, type EquivalentCommand, formatSize, yesOrNo } from './command-words.ts';
import { writeCreate, writeReinstall } from './installation-options.ts';

type Opcode = Schemas['Opcode'];
type OpcodeName = Opcode['opcode'];
type OpcodeOf<Name extends OpcodeName> = Extract<Opcode, { readonly opcode: Name }>;

/** The commands of the operations that the page submits. */
const commands = {
  INSTANCE_CREATE: (opcode) => writeCreate(instance('add'), opcode),
  INSTANCE_REINSTALL: (opcode) => writeReinstall(instance('reinstall'), opcode),
  INSTANCE_STARTUP: ({ name, osParametersSecret = {} }) =>
    instance('startup').list('--os-parameters-secret', osParametersSecret, '', true).names(name),
  INSTANCE_SHUTDOWN: ({ name, timeoutS }) =>
    withSeconds(instance('shutdown'), '--timeout', timeoutS).names(name),
  INSTANCE_REBOOT: ({ name, kind, timeoutS }) => {
    const words = withSeconds(instance('reboot'), '--shutdown-timeout', timeoutS);
    return (kind === undefined ? words : words.option('--type', kind)).names(name);
  },
  INSTANCE_REMOVE: ({ name, shutdownTimeoutS }) =>
    withSeconds(instance('remove'), '--shutdown-timeout', shutdownTimeoutS).names(name),
  INSTANCE_ADOPT: ({ name }) => instance('adopt').names(name),
  INSTANCE_RENAME: ({ name, newName }) => instance('rename').names(name, newName),
  INSTANCE_COPY: ({ name, newName }) => instance('copy').names(name, newName),
  INSTANCE_GROW_DISK: ({ name, disk, amountBytes, absolute = false }) => {
    const words = absolute ? instance('grow-disk').flag('--absolute') : instance('grow-disk');
    return words.names(name, String(disk), formatSize(amountBytes));
  },
  INSTANCE_SNAPSHOT: ({ name, snapshot, copy = false }) =>
    (copy ? instance('snapshot').flag('--copy') : instance('snapshot')).names(name, snapshot),
  INSTANCE_RESTORE: ({ name, snapshot }) => instance('restore-snapshot').names(name, snapshot),
  INSTANCE_REMOVE_SNAPSHOT: ({ name, snapshot }) =>
    instance('remove-snapshot').names(name, snapshot),
  INSTANCE_MOVE: ({ name, node }) => onNode(instance('move'), node).names(name),
  INSTANCE_MIGRATE: ({ name, node }) => onNode(instance('migrate'), node).names(name),
  INSTANCE_FAILOVER: ({ name, node }) => onNode(instance('failover'), node).names(name),
  OS_SET_PARAMS: ({ name, trusted, hidden, blacklisted }) => {
    const words = new CommandWords('gnt-os', 'modify');
    if (trusted !== undefined) words.option('--trusted', yesOrNo(trusted));
    if (hidden !== undefined) words.option('--hidden', yesOrNo(hidden));
    if (blacklisted !== undefined) words.option('--blacklisted', yesOrNo(blacklisted));
    return words.names(name);
  },
  PROFILE_SET_PARAMS: ({ name, osParameters = {}, osParametersPrivate = {} }) =>
    new CommandWords('gnt-profile', 'modify')
      .list('--os-parameters', osParameters)
      .list('--os-parameters-private', osParametersPrivate, '', true)
      .names(name),
  PROFILE_REMOVE: ({ name }) => new CommandWords('gnt-profile', 'remove').names(name),
  NETWORK_ADD: ({ name, network, gateway, macPrefix, addReserved = [], tags = [] }) => {
    const words = new CommandWords('gnt-network', 'add').option('--network', network);
    if (gateway !== undefined) words.option('--gateway', gateway);
    if (macPrefix !== undefined) words.option('--mac-prefix', macPrefix);
    if (addReserved.length > 0) words.option('--add-reserved-ips', addReserved.join(','));
    if (tags.length > 0) words.option('--tags', tags.join(','));
    return words.names(name);
  },
  NETWORK_CONNECT: ({ name, nodes = [], connection }) =>
    new CommandWords('gnt-network', 'connect').names(
      name,
      ...nodes,
      connection.mode,
      ...(connection.mode === 'bridged' ? [connection.link] : []),
    ),
  NETWORK_DISCONNECT: ({ name, nodes = [] }) =>
    new CommandWords('gnt-network', 'disconnect').names(name, ...nodes),
  NETWORK_REMOVE: ({ name }) => new CommandWords('gnt-network', 'remove').names(name),
  BOOTENV_REMOVE: ({ object }) => {
    const words = new CommandWords('gnt-bootenv', 'remove');
    if (object.kind === 'bootEnv') return words.names(object.name);
    return words.option(object.kind === 'template' ? '--template' : '--param', object.name);
  },
  BOOTENV_UPLOAD_ISO: ({ bootEnv, source }) =>
    new CommandWords('gnt-bootenv', 'add-iso').names(
      ...[bootEnv, source].flatMap((word) => (word === undefined ? [] : [word])),
    ),
  BOOTENV_DESTROY_ISO: ({ isoFile }) =>
    new CommandWords('gnt-bootenv', 'remove-iso').names(isoFile),
  NODE_SET_PARAMS: ({ name, drained, offline }) => {
    const words = new CommandWords('gnt-node', 'modify');
    if (drained !== undefined) words.option('--drained', yesOrNo(drained));
    if (offline !== undefined) words.option('--offline', yesOrNo(offline));
    return words.names(name);
  },
} as const satisfies { readonly [Name in OpcodeName]?: (opcode: OpcodeOf<Name>) => CommandWords };

/** An operation with an equivalent command. */
export type KnownOpcode = OpcodeOf<keyof typeof commands>;

/** Returns the command that submits the same operation. Pure. */
export function commandOf(opcode: KnownOpcode): EquivalentCommand {
  // The table has a function for each name, which TypeScript cannot relate to the union.
  const write = commands[opcode.opcode] as (opcode: KnownOpcode) => CommandWords;
  return write(opcode).finish();
}

function instance(verb: string): CommandWords {
  return new CommandWords('gnt-instance', verb);
}

function withSeconds(
  words: CommandWords,
  option: string,
  seconds: number | undefined,
): CommandWords {
  return seconds === undefined ? words : words.option(option, String(seconds));
}

function onNode(words: CommandWords, node: string | undefined): CommandWords {
  return node === undefined ? words : words.option('--node', node);
}
