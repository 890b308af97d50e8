import type { ParseArgsOptionDescriptor } from 'node:util';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';

export const OPTIONS = {
  'control-socket': { type: 'string' },
  'content-socket': { type: 'string' },
  successor: { type: 'boolean', default: false },
  ganeti: { type: 'boolean', default: false },
  'ganeti-socket': { type: 'string' },
  'ganeti-pid-file': { type: 'string' },
  bind: { type: 'string', short: 'b', default: SERVICE_IPV4 },
  port: { type: 'string', short: 'p', default: '80' },
  'os-search-path': { type: 'string', multiple: true },
  'package-directory': { type: 'string', multiple: true },
  'hop-limit': { type: 'string' },
  'log-file': { type: 'string' },
  foreground: { type: 'boolean', short: 'f', default: false },
  debug: { type: 'boolean', short: 'd', default: false },
  syslog: { type: 'string' },
  'no-user-checks': { type: 'boolean', default: false },
  'log-level': { type: 'string', default: 'info' },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'V', default: false },
} as const satisfies Record<string, ParseArgsOptionDescriptor>;

export type OptionName = keyof typeof OPTIONS;

const NO_EFFECT = 'no effect; accepted because METAD_ARGS of Ganeti may contain it';

export const OPTION_HELP: Readonly<
  Record<OptionName, { readonly value?: string; readonly text: string }>
> = {
  'control-socket': { value: 'PATH', text: 'socket for the node daemon or other host programs' },
  'content-socket': { value: 'PATH', text: 'socket of the node daemon for images and packages' },
  successor: { text: 'replace a process that was killed; byte counts of the queues continue' },
  ganeti: { text: "replace Ganeti's own metadata daemon; gnt-noded is not needed" },
  'ganeti-socket': {
    value: 'PATH',
    text: 'control socket of Ganeti (default: /run/ganeti/socket/ganeti-metad)',
  },
  'ganeti-pid-file': {
    value: 'PATH',
    text: 'pid file for Ganeti (default: ganeti-metad.pid in the folder of its pid files)',
  },
  bind: { value: 'ADDRESS', text: `IPv4 address to listen on (default: ${SERVICE_IPV4})` },
  port: { value: 'PORT', text: 'TCP port (default: 80); needs root or CAP_NET_BIND_SERVICE' },
  'os-search-path': {
    value: 'DIR',
    text: 'folder with OS definitions; repeatable (default: the folders of Ganeti)',
  },
  'package-directory': {
    value: 'DIR',
    text: 'folder with packages; repeatable (default: /srv/ganeti/packages)',
  },
  'hop-limit': {
    value: 'N',
    text: 'IP TTL of answers, 1 to 255; with 1, containers in guests get no answers (default: the kernel sets it)',
  },
  'log-file': {
    value: 'PATH',
    text: 'file for the log, opened again on SIGHUP (default: standard error)',
  },
  foreground: { text: NO_EFFECT },
  debug: { text: 'the same as --log-level debug; METAD_ARGS of Ganeti may contain it' },
  syslog: {
    value: 'USAGE',
    text: `${NO_EFFECT}; see --log-file`,
  },
  'no-user-checks': { text: NO_EFFECT },
  'log-level': {
    value: 'LEVEL',
    text: 'level of the log: debug, info, warn or error (default: info)',
  },
  help: { text: 'show this help' },
  version: { text: 'show the version' },
};

export const SYNOPSIS = [
  'gnt-metad --control-socket PATH --content-socket PATH [--successor]',
  'gnt-metad --ganeti [options]',
] as const;

export const DESCRIPTION = [
  'Serves instances their metadata on 169.254.169.254.',
  'gnt-noded starts the first form inside the network namespace of the channel, as an unprivileged user.',
  "The second form replaces Ganeti's own metadata daemon and needs no gnt-noded.",
] as const;

export function flagsOf(name: OptionName): string {
  const option: ParseArgsOptionDescriptor = OPTIONS[name];
  const { value } = OPTION_HELP[name];
  const short = option.short === undefined ? '' : `-${option.short}, `;
  return `${short}--${name}${value === undefined ? '' : ` ${value}`}`;
}

export function isOptionName(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name);
}

export function formatUsage(): string {
  const names = Object.keys(OPTIONS).filter(isOptionName);
  return [
    ...SYNOPSIS.map((line, index) => `${index === 0 ? 'Usage: ' : '       '}${line}`),
    '',
    ...DESCRIPTION.flatMap((line) => breakLine(line, '')),
    '',
    'Options:',
    ...names.flatMap((name) => [
      `  ${flagsOf(name)}`,
      ...breakLine(OPTION_HELP[name].text, '      '),
    ]),
    '',
  ].join('\n');
}

const COLUMNS = 80;

function breakLine(text: string, indent: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > COLUMNS) lines.push(indent + word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
