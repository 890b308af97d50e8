import type { Command } from 'commander';
import { addCommand, option, type OptionMaker } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { SshOptions } from './ssh.ts';

const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;
const channel = () => import('./channel.ts');
const ssh = () => import('./ssh.ts');

const COPIES = [
  ['push', 'files here, and last where to in the guest', 'copy files into the guest by SSH'],
  ['pull', 'files of the guest, and last where to here', 'copy files out of the guest by SSH'],
] as const;

function sshOptions(): readonly OptionMaker[] {
  const group = 'SSH:';
  return [
    option('-l, --login-name <user>', "user of the guest (default: cloud-init's, or root)", {
      group,
    }),
    option('-i, --identity <file>', 'private key to log in with', { group, complete: 'file' }),
    option('-p, --port <port>', 'port of sshd in the guest (default 22)', { group }),
  ];
}

/**
 * What leads into a guest: console, connect, ssh, exec, push, pull, known-hosts, send and receive.
 */
export function addChannel(program: Command, context: Context): void {
  addCommand(program, {
    ...ONE,
    usage: 'console <name>',
    summary: 'connect to the serial console; Ctrl-] leaves it',
  }).action(async (name: string) => {
    await (await channel()).runConsole(context, name);
  });
  addCommand(program, {
    ...ONE,
    usage: 'connect <name> <port>',
    arguments: { ...NAME, port: 'TCP port in the guest' },
    summary: 'connect stdin and stdout to a TCP port of the guest, over the channel',
    description: 'Each direction ends on its own, so it serves as the ProxyCommand of ssh.',
    examples: [
      'ssh -o ProxyCommand="gnt-instance connect %h 22" root@web1',
      'printf "GET / HTTP/1.0\\r\\n\\r\\n" | gnt-instance connect web1 80',
    ],
  }).action(async (name: string, port: string) => {
    await (await channel()).runConnect(context, name, port);
  });
  addCommand(program, {
    ...ONE,
    usage: 'ssh <name> [command...]',
    arguments: {
      ...NAME,
      command: 'what to run there instead of a shell, with options of its own',
    },
    summary: 'log in to the guest by SSH, over the channel, with its host keys verified',
    description:
      'Needs no network. The keys are those that the guest said over its own channel after its installation; others are refused until `gnt-instance modify --accept-host-keys`. Your own keys, agent and ~/.ssh/config count as always, except that no connection is shared, no KnownHostsCommand asked, no display forwarded, and the agent only with -A. Ends with the status of ssh.',
    options: [
      ...sshOptions(),
      option('-A, --forward-agent', 'let the guest, and its root, use your agent', {
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
    arguments: { ...NAME, command: 'what to run there, with options of its own' },
    summary: 'run a command in the guest by SSH, over the channel',
    description:
      'As ssh, without a terminal. The words of the command arrive as they are: for pipes and variables write `sh -c`. Ends with the status of the command, 255 when there was no login.',
    options: sshOptions(),
    examples: [
      'gnt-instance exec web1 systemctl is-active nginx',
      `gnt-instance exec web1 sh -c 'df -h | tail -1'`,
    ],
  }).action(async (name: string, command: readonly string[], options: SshOptions) => {
    await (await ssh()).runExec(context, name, command, options);
  });
  for (const [direction, ends, summary] of COPIES) {
    addCommand(program, {
      ...ONE,
      usage: `${direction} <name> <paths...>`,
      arguments: { ...NAME, paths: ends },
      completeArguments: ['instance', 'file'],
      summary,
      description: `${summary}, folders with all that is in them, over the channel and with the host keys of gnt-instance ssh. Paths of the guest begin in the home of its user.`,
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
    usage: 'known-hosts [names...]',
    arguments: { names: 'instances; all without names' },
    completeArguments: ['instance'],
    summary: 'print the SSH host keys of instances as lines of a known_hosts file',
    examples: ['gnt-instance known-hosts >/etc/ssh/ssh_known_hosts_gnt'],
  }).action(async (names: readonly string[]) => {
    await (await ssh()).runKnownHosts(context, names);
  });
  addCommand(program, {
    ...ONE,
    usage: 'send <name> [file]',
    arguments: { ...NAME, file: 'file to send; stdin without it' },
    completeArguments: ['instance', 'file'],
    summary: 'send bytes for the guest to read from /ganeti/latest/read',
    options: [option('--no-wait', 'fail when the queue is full', { group: 'Channel:' })],
    examples: ['echo reload | gnt-instance send web1'],
  }).action(async (name: string, file: string | undefined, options: { wait: boolean }) => {
    await (await channel()).runSend(context, name, file, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'receive <name>',
    summary: 'print the bytes that the guest wrote to /ganeti/latest/write',
    description: 'What is printed is gone from the queue.',
    options: [option('-f, --follow', 'go on with what comes', { group: 'Channel:' })],
  }).action(async (name: string, options: { follow?: boolean }) => {
    await (await channel()).runReceive(context, name, options);
  });
}
