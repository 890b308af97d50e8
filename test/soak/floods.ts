import { createSocket } from 'node:dgram';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { askFromGuest, connectFromGuest } from '../metad/support/guest-http.ts';
import type { Attack, Attacker } from './attackers.ts';

/**
 * Repeated actions of a guest. Each flood runs as fast as metad allows, on as many connections as a
 * guest may have.
 */

const HOST = 'Host: 169.254.169.254\r\n';
const CONNECTIONS = 64;
/**
 * Delay after a refused or closed connection. Without it, the attack would hit the packet filter
 * instead.
 */
const RECONNECT_MS = 5;
const DHCP_BURST = 64;
const PATH = '/ganeti/latest';

function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
}

function post(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\n${HOST}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** Reconnects on as many connections as a guest may have. Each lasts until metad closes it. */
function onConnections(use: (socket: Socket) => void): Attacker {
  return async (attack) => {
    const workers = Array.from({ length: CONNECTIONS }, async () => {
      while (!attack.signal.aborted) {
        await connectUntilCut(attack, use);
        await sleep(RECONNECT_MS, undefined, { signal: attack.signal }).catch(() => undefined);
      }
    });
    await Promise.all(workers);
  };
}

/** Asks for identity tokens of ever new audiences, each of which is a signature until the limit. */
const askForTokens = onConnections((socket) => {
  const ask = (): boolean =>
    socket.write(get(`${PATH}/identity/token?audience=a${performance.now()}`));
  socket.on('data', ask);
  socket.on('connect', ask);
});

async function connectUntilCut(attack: Attack, use: (socket: Socket) => void): Promise<void> {
  const socket = connectFromGuest(attack.namespace);
  attack.count('connections');
  const stop = (): void => void socket.destroy();
  attack.signal.addEventListener('abort', stop);
  await new Promise<void>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.on('end', stop);
    use(socket);
  });
  attack.signal.removeEventListener('abort', stop);
}

/** Sends the same bytes repeatedly, with or without reading the answers. */
function pour(bytes: string, isReading = true): Attacker {
  return onConnections((socket) => {
    if (isReading) socket.on('data', () => undefined);
    else socket.pause();
    const send = (): void => {
      // setImmediate gives the other connections a turn.
      if (socket.writable && socket.write(bytes)) setImmediate(send);
    };
    socket.on('connect', send);
    socket.on('drain', send);
  });
}

/**
 * Sends one request after another on each connection, each after the answer to the previous one.
 */
const hurry = onConnections((socket) => {
  socket.on('data', () => socket.write(get('/')));
  socket.on('connect', () => socket.write(get('/')));
});

/**
 * Waits for a change, which detaches the parser from the connection, with more data behind the
 * request.
 */
const parked: Attacker = async (attack) => {
  const path = `${PATH}/meta_data.json`;
  const etag = await askForEtag(attack, path);
  const query = `wait_for_change=true&last_etag=${encodeURIComponent(etag)}`;
  await pour(`${get(`${path}?${query}`)}${GARBAGE}`)(attack);
};

/** Retries, because other floods of the same guest make metad close this connection too. */
async function askForEtag({ namespace, signal }: Attack, path: string): Promise<string> {
  while (!signal.aborted) {
    const answer = await askFromGuest(namespace, path, { signal }).catch(() => undefined);
    if (answer?.headers.etag !== undefined) return answer.headers.etag;
    await sleep(RECONNECT_MS);
  }
  return '';
}

const dhcp: Attacker = async (attack) => {
  const fd = inNetworkNamespace(`/run/netns/${attack.namespace}`, () =>
    openDeviceSocket({ device: 'eth0', type: 'udp', address: '0.0.0.0', port: 68 }),
  );
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.bind({ fd }, resolve));
  const message = Buffer.alloc(300, 1);
  while (!attack.signal.aborted) {
    for (let count = 0; count < DHCP_BURST; count++)
      socket.send(message, 67, '169.254.169.254', () => undefined);
    attack.count('messages', DHCP_BURST);
    await sleep(1, undefined, { signal: attack.signal }).catch(() => undefined);
  }
  socket.close();
};

const CRUMBS = '1\r\na\r\n'.repeat(10_000);
const GARBAGE = '?'.repeat(60_000);
const ZEROS = `{"v1":{"init":{"errors":[${'0,'.repeat(130_000)}0]}}}`;
/** Contains a masked value, and is long enough to be truncated. */
const DESCRIPTION = 'hunter2 '.repeat(1900);
const BOOT_EVENT = `{"event_type":"start","name":"init-local","description":"${DESCRIPTION}"}`;
const MANY_HEADERS = Array.from({ length: 900 }, (_, index) => `a${index}:\r\n`).join('');

export const FLOODS: Readonly<Record<string, Attacker>> = {
  pipelined: pour(get('/').repeat(1000)),
  hurry: hurry,
  waits: pour(get(`${PATH}/meta_data.json?wait_for_change=true`).repeat(16)),
  churn: pour(get(`${PATH}/read?wait=60`).repeat(17)),
  images: pour(get(`${PATH}/os/image`), false),
  'identity-tokens': askForTokens,
  credentials: pour(get('/latest/meta-data/iam/security-credentials/web').repeat(16)),
  packages: pour(get(`${PATH}/os/package`).repeat(16), false),
  heads: pour(`HEAD ${PATH}/os/image HTTP/1.1\r\n${HOST}\r\n`.repeat(16)),
  events: pour(post(`${PATH}/install/events`, `[${'{},'.repeat(87_000)}{}]`)),
  'boot-status': pour(post(`${PATH}/boot/status`, ZEROS)),
  'boot-events': pour(post(`${PATH}/boot/events`, BOOT_EVENT).repeat(16)),
  ready: pour(post(`${PATH}/ready`, 'pub_key_=a&'.repeat(1480)).repeat(16)),
  writes: pour(post(`${PATH}/write`, 'w'.repeat(64 * 1024))),
  crumbs: pour(
    `POST ${PATH}/write HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${CRUMBS}0\r\n\r\n`,
  ),
  bodies: pour(`GET / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${CRUMBS}`),
  garbage: pour(GARBAGE),
  parked: parked,
  connect: pour(`CONNECT / HTTP/1.1\r\n${HOST}\r\n${CRUMBS}`),
  headers: pour(get('/', MANY_HEADERS)),
  tokens: pour(
    `PUT /latest/api/token HTTP/1.1\r\n${HOST}X-aws-ec2-metadata-token-ttl-seconds: 60\r\n\r\n`.repeat(
      16,
    ),
  ),
  unread: pour(get('/latest/user-data').repeat(16), false),
  'half-open': pour('GET / HTTP/1.1\r\nHos'),
  dhcp: dhcp,
};

/** Runs all floods at once in one guest. */
export const everything: Attacker = async (attack) => {
  await Promise.all(Object.values(FLOODS).map(async (flood) => await flood(attack)));
};
