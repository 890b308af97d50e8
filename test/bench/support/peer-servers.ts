import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LuxiClient } from '../../metad/support/luxi-client.ts';
import { unpackProgram } from './debian-program.ts';

/** A running server for the comparison. */
export interface Peer {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
}

export interface PeerOptions {
  /** Network namespace that has 169.254.169.254. */
  readonly namespace: string;
  readonly directory: string;
  /** Path and body of the answer. */
  readonly path: string;
  readonly body: string;
  /** Ganeti's daemon identifies the guest by this address. */
  readonly guestIp: string;
  /** Public OS parameters, which Ganeti's daemon serves. */
  readonly parameters: Readonly<Record<string, string>>;
}

const ADDRESS = '169.254.169.254';
const START_TIMEOUT_MS = 10_000;

/** Starts the available servers for the comparison. The stack ends their processes. */
export async function startPeers(
  options: PeerOptions,
  stack: AsyncDisposableStack,
): Promise<readonly Peer[]> {
  const peers = [
    await startBare(options, stack),
    await startNginx(options, stack),
    await startGaneti(options, stack),
  ];
  return peers.filter((peer) => peer !== null);
}

async function startBare(options: PeerOptions, stack: AsyncDisposableStack): Promise<Peer> {
  const program = `
    const body = Buffer.from(process.argv[1]);
    require('node:http').createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.end(body);
    }).listen(8080, '${ADDRESS}');`;
  const pid = start(options, stack, [process.execPath, '-e', program, options.body]);
  return await ready({ name: 'bare node:http', port: 8080, pid });
}

async function startNginx(options: PeerOptions, stack: AsyncDisposableStack): Promise<Peer | null> {
  const program = await unpackProgram('nginx', ['nginx'], 'usr/sbin/nginx');
  if (!program) return null;
  const directory = join(options.directory, 'nginx');
  const file = join(directory, 'files', options.path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, options.body);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  const configuration = `daemon off; master_process off; pid ${directory}/pid; error_log stderr;
events { worker_connections 4096; }
http {
  access_log off; default_type application/json; keepalive_requests 1000000000; tcp_nodelay on;
  ${temporary.join(' ')}
  server { listen ${ADDRESS}:8081; root ${directory}/files; }
}
`;
  await writeFile(join(directory, 'nginx.conf'), configuration);
  const command = [program.path, '-e', 'stderr', '-p', directory, '-c', `${directory}/nginx.conf`];
  return await ready({ name: 'nginx', port: 8081, pid: start(options, stack, command) });
}

/**
 * Starts Ganeti's daemon in a mount namespace with its own empty folders and users, because its
 * paths and users are built in.
 */
async function startGaneti(
  options: PeerOptions,
  stack: AsyncDisposableStack,
): Promise<Peer | null> {
  const program = await unpackProgram(
    'ganeti-metad',
    ['ganeti-haskell-3.0', 'libpcre3'],
    'usr/lib/ganeti/3.0/usr/sbin/ganeti-metad',
  );
  if (!program) return null;
  const libraries = [program.libraries, program.libraries.replace('/usr/lib/', '/lib/')].join(':');
  const script = `set -e
for folder in /run /var/log /var/lib; do mount -t tmpfs none $folder; done
mkdir -p /run/ganeti/socket /var/log/ganeti /var/lib/ganeti
cp /etc/passwd /etc/group /run
for name in metad masterd confd wconfd luxid rapi daemons admin; do
  echo "gnt-$name:x:65533:65533::/:/bin/false" >>/run/passwd
  echo "gnt-$name:x:65533:" >>/run/group
done
mount --bind /run/passwd /etc/passwd
mount --bind /run/group /etc/group
export LD_LIBRARY_PATH=${libraries} LC_ALL=C.UTF-8
exec ${program.path} -f --no-user-checks -b ${ADDRESS} -p 8082`;
  const command = ['unshare', '--mount', '--', 'sh', '-c', script];
  const peer = { name: 'ganeti-metad', port: 8082, pid: start(options, stack, command) };
  try {
    await pushToGaneti(`/proc/${peer.pid}/root/run/ganeti/socket/ganeti-metad`, options);
    return await ready(peer);
  } catch {
    process.stderr.write('bench: ganeti-metad does not start here\n');
    return null;
  }
}

async function pushToGaneti(
  socketPath: string,
  { guestIp, parameters }: PeerOptions,
): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      using client = await LuxiClient.open(socketPath);
      await client.call('updateConfig', ganetiInstance(guestIp, parameters));
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** Returns the instance in the format of Ganeti's node daemon. */
function ganetiInstance(ip: string, parameters: Readonly<Record<string, string>>): object {
  return {
    name: 'inst1.example.com',
    uuid: '1e6ca3fc-2e7c-4f35-89bb-480ed1e57569',
    os: 'debian',
    osparams: parameters,
    osparams_private: {},
    osparams_secret: {},
    nics: [{ name: 'ganeti:communication:inst1.example.com', mac: '52:54:00:e1:a3:45', ip }],
  };
}

/** @returns the pid of the program, because each wrapper replaces itself by exec */
function start(
  { namespace }: PeerOptions,
  stack: AsyncDisposableStack,
  command: readonly string[],
): number {
  const child = spawn('ip', ['netns', 'exec', namespace, ...command], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  stack.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return child.pid ?? 0;
}

/** Waits until the process listens, by its own network namespace. */
async function ready(peer: Peer): Promise<Peer> {
  const port = `:${peer.port.toString(16).toUpperCase().padStart(4, '0')}`;
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const sockets = await readFile(`/proc/${peer.pid}/net/tcp`, 'utf8').catch(() => '');
    if (sockets.includes(`${port} 00000000:0000 0A`)) return peer;
    if (Date.now() > deadline) throw new Error(`${peer.name} does not listen`);
    await sleep(50);
  }
}
