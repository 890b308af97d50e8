import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';

const LAUNCHER = join(import.meta.dirname, '../../../scripts/gnt');
const COMMANDS = ['gnt-appliance', 'gnt-cluster', 'gnt-instance', 'gnt-node', 'gnt-os'];
const SENT_BYTES = GIB;
/** Sends zeros to the address, or receives them and prints MiB per second. */
const PLAIN_TCP = `
const net = require('node:net');
const [host, role] = process.argv.slice(1);
if (role === 'receive') {
  net.createServer((socket) => {
    let bytes = 0; const since = performance.now();
    socket.on('data', (chunk) => (bytes += chunk.length));
    socket.on('end', () => {
      console.log(bytes / ${MIB} / (performance.now() - since) * 1000);
      process.exit(0);
    });
  }).listen(5000, host, () => console.log('ready'));
} else {
  const socket = net.connect(5000, host); const chunk = Buffer.alloc(${MIB});
  let left = ${SENT_BYTES};
  const send = () => {
    while (left > 0) { left -= chunk.length; if (!socket.write(chunk)) return socket.once('drain', send); }
    socket.end();
  };
  send();
}`;

export interface JoinedHost {
  readonly namespace: string;
  readonly address: string;
  readonly addressV6: string;
  /** Its end of the link. */
  readonly link: string;
  /** A folder of programs, in which gnt-noded runs in the namespace. */
  readonly programs: string;
}

/** Makes two network namespaces with a link between them. The stack removes them. */
export async function joinHosts(
  stack: AsyncDisposableStack,
): Promise<readonly [JoinedHost, JoinedHost]> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-bench-links-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const [one, two] = [await addHost(folder, 1, stack), await addHost(folder, 2, stack)];
  await run('ip', ['link', 'add', one.link, 'type', 'veth', 'peer', 'name', two.link]);
  for (const { namespace, address, addressV6, link } of [one, two]) {
    await run('ip', ['link', 'set', link, 'netns', namespace]);
    const inside = ['-n', namespace];
    await run('ip', [...inside, 'address', 'add', `${address}/24`, 'dev', link]);
    // No detection of duplicates, for which a program would have to wait.
    await run('ip', [...inside, 'address', 'add', `${addressV6}/64`, 'dev', link, 'nodad']);
    await run('ip', [...inside, 'link', 'set', link, 'up']);
    await run('ip', [...inside, 'link', 'set', 'lo', 'up']);
  }
  return [one, two];
}

async function addHost(
  folder: string,
  number: number,
  stack: AsyncDisposableStack,
): Promise<JoinedHost> {
  const namespace = `gnt-links-${process.pid}-${number}`;
  await run('ip', ['netns', 'add', namespace]);
  stack.defer(async () => void (await run('ip', ['netns', 'del', namespace])));
  const programs = await mkdtemp(join(folder, 'programs-'));
  for (const name of COMMANDS) await symlink(LAUNCHER, join(programs, name));
  const inner = join(programs, 'inner');
  await run('mkdir', [inner]);
  await symlink(LAUNCHER, join(inner, 'gnt-noded'));
  const entered = `#!/bin/sh\nexec nsenter --net=/run/netns/${namespace} ${inner}/gnt-noded "$@"\n`;
  await writeFile(join(programs, 'gnt-noded'), entered);
  await chmod(join(programs, 'gnt-noded'), 0o755);
  return {
    ...{ namespace, address: `10.98.76.${number}`, addressV6: `fd00:98:76::${number}`, programs },
    link: `gbl${process.pid}n${number}`,
  };
}

/** Returns the MiB per second of plain TCP between two Node processes. */
export async function measurePlainTcp(from: JoinedHost, to: JoinedHost): Promise<number> {
  const start = (host: JoinedHost, role: string) =>
    spawn(
      'nsenter',
      [
        `--net=/run/netns/${host.namespace}`,
        process.execPath,
        ...['-e', PLAIN_TCP, to.address, role],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
  const receiver = start(to, 'receive');
  let said = '';
  receiver.stdout.on('data', (bytes: Buffer) => (said += String(bytes)));
  await once(receiver.stdout, 'data');
  start(from, 'send');
  await once(receiver, 'close');
  return Number(said.trim().split('\n').at(-1));
}
