import type { Command } from 'commander';
import { addCommand, option, type OptionMaker } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { SshOptions } from './ssh.ts';

const GROUP = 'Reach the guest:';
const NAME = { name: 'Name of the instance' } as const;
const ONE = { group: GROUP, arguments: NAME, completeArguments: ['instance'] } as const;
const channel = () => import('./instance-channel.ts');
const ssh = () => import('./ssh.ts');

const COPIES = [
  ['push', 'Local files, and last the target in the guest', 'Copy files into the guest by SSH'],
  ['pull', 'Files of the guest, and last the local target', 'Copy files out of the guest by SSH'],
] as const;

function sshOptions(): readonly OptionMaker[] {
  const group = 'SSH:';
  return [
    option(
      '-l, --login-name <user>',
      'User in the guest (default: that of cloud-init, else root)',
      {
        group,
      },
    ),
    option('-i, --identity <file>', 'Private key for the login', { group, complete: 'file' }),
    option('-p, --port <port>', 'Port of sshd in the guest (default 22)', { group }),
  ];
}

/** Adds console, connect, ssh, exec, push, pull, known-hosts, send and receive. */
export function addChannel(program: Command, context: Context): void {
  addCommand(program, {
    ...ONE,
    usage: 'ssh <name> [command...]',
    arguments: { ...NAME, command: 'Command to run in place of a shell, with its options' },
    summary: 'Log in to the guest by SSH over the channel',
    description:
      'Needs no network. Verifies the host keys that the guest reported after its installation. The exit status is that of ssh.',
    explanation: [
      'Other host keys are refused until gnt-instance modify --accept-host-keys. Your keys, agent and ~/.ssh/config apply, without connection sharing, KnownHostsCommand and X11 forwarding; the agent is forwarded with -A only.',
    ],
    options: [
      ...sshOptions(),
      option('-A, --forward-agent', 'Let the guest and its root use your agent', {
        group: 'SSH:',
      }),
    ],
    examples: ['gnt-instance ssh web1', 'gnt-instance ssh web1 systemctl --failed'],
  }).action(async (name: string, command: readonly string[], options: SshOptions) => {
    await (await ssh()).runSsh(context, name, command, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'exec <name> <command...>',
    arguments: { ...NAME, command: 'Command to run, with its options' },
    summary: 'Run a command in the guest by SSH over the channel',
    description:
      'Same as ssh, without a terminal. The words of the command are passed unchanged: use sh -c for pipes and variables. The exit status is that of the command, or 255 without a login.',
    options: sshOptions(),
    examples: [
      'gnt-instance exec web1 systemctl is-active nginx',
      `gnt-instance exec web1 sh -c 'df -h | tail -1'`,
    ],
  }).action(async (name: string, command: readonly string[], options: SshOptions) => {
    await (await ssh()).runExec(context, name, command, options);
  });
  for (const [direction, paths, summary] of COPIES) {
    addCommand(program, {
      ...ONE,
      usage: `${direction} <name> <paths...>`,
      arguments: { ...NAME, paths },
      completeArguments: ['instance', 'file'],
      summary,
      description: `${summary}, over the channel, with the same host keys as gnt-instance ssh. Folders are copied with their content. Relative paths in the guest begin in the home of its user.`,
      options: sshOptions(),
      examples: [
        direction === 'push'
          ? 'gnt-instance push web1 site.conf /tmp/'
          : 'gnt-instance pull web1 /var/log/cloud-init.log .',
      ],
    }).action(async (name: string, paths: readonly string[], options: SshOptions) => {
      await (await ssh()).runCopy(context, direction, name, paths, options);
    });
  }
  addCommand(program, {
    ...ONE,
    usage: 'console <name>',
    summary: 'Connect to the serial console; Ctrl-] ends it',
  }).action(async (name: string) => {
    await (await channel()).runConsole(context, name);
  });
  addCommand(program, {
    ...ONE,
    usage: 'connect <name> <port>',
    arguments: { ...NAME, port: 'TCP port in the guest' },
    summary: 'Connect stdin and stdout to a TCP port of the guest',
    description:
      'Connects over the channel. Each direction ends on its own, so that the command can be the ProxyCommand of ssh.',
    examples: [
      'ssh -o ProxyCommand="gnt-instance connect %h 22" root@web1',
      'printf "GET / HTTP/1.0\\r\\n\\r\\n" | gnt-instance connect web1 80',
    ],
  }).action(async (name: string, port: string) => {
    await (await channel()).runConnect(context, name, port);
  });
  addCommand(program, {
    ...ONE,
    usage: 'known-hosts [names...]',
    arguments: { names: 'Instances (default: all)' },
    summary: 'Print SSH host keys in the format of known_hosts',
    examples: ['gnt-instance known-hosts >/etc/ssh/ssh_known_hosts_gnt'],
  }).action(async (names: readonly string[]) => {
    await (await ssh()).runKnownHosts(context, names);
  });
  addCommand(program, {
    ...ONE,
    usage: 'send <name> [file]',
    arguments: { ...NAME, file: 'File to send (default: stdin)' },
    completeArguments: ['instance', 'file'],
    summary: 'Send bytes to the guest, for /ganeti/latest/read',
    options: [option('--no-wait', 'Fail if the queue is full', { group: 'Channel:' })],
    examples: ['echo reload | gnt-instance send web1'],
  }).action(async (name: string, file: string | undefined, options: { wait: boolean }) => {
    await (await channel()).runSend(context, name, file, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'receive <name>',
    summary: 'Print bytes that the guest wrote to /ganeti/latest/write',
    description: 'Removes the printed bytes from the queue.',
    options: [option('-f, --follow', 'Continue with new bytes', { group: 'Channel:' })],
  }).action(async (name: string, options: { follow?: boolean }) => {
    await (await channel()).runReceive(context, name, options);
  });
}
