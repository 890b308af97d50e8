import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXPECTED_STATUSES, fuzzConnection } from '../metad/support/fuzz-client.ts';
import { connectFromGuest } from '../metad/support/guest-http.ts';

/** Parameters of a hostile guest, which works until the signal aborts. */
export interface Attack {
  readonly namespace: string;
  readonly random: (below: number) => number;
  readonly signal: AbortSignal;
  /** Counts an action by a short name. */
  count(what: string, by?: number): void;
  problem(text: string): void;
}

export type Attacker = (attack: Attack) => Promise<void>;

const HOST = 'Host: 169.254.169.254\r\n';
const FUZZERS = 40;
/** Long enough for this process, which is busy itself. */
const FUZZ_PATIENCE_MS = 1000;
const SLOW_CLIENTS = 40;
const SLOW_STEP_MS = 500;
/** More than all of metad's timeouts together. A slower client was not cut off. */
const SLOW_LIMIT_MS = 60_000;
/** With the last request, as many as may wait for their answers. */
const PIPELINED_REQUESTS = 15;
const FLOODERS = 8;
const HELD_MS = 200;

/** Sends generated requests, from almost valid to garbage. */
export const fuzz: Attacker = async (attack) => {
  await inParallel(FUZZERS, attack, async () => {
    const statuses = await fuzzConnection(
      connectFromGuest(attack.namespace),
      attack.random,
      FUZZ_PATIENCE_MS,
    );
    attack.count('connections');
    for (const status of statuses) {
      attack.count(String(status));
      if (!EXPECTED_STATUSES.has(status)) attack.problem(`fuzz got status ${status}`);
    }
  });
};

/** Sends headers and bodies byte by byte, or leaves answers unread. */
export const crawl: Attacker = async (attack) => {
  const texts = [
    `GET / HTTP/1.1\r\n${HOST}X-Slow: ${'a'.repeat(4000)}\r\n\r\n`,
    `POST /ganeti/latest/write HTTP/1.1\r\n${HOST}Content-Length: 4000\r\n\r\n${'a'.repeat(4000)}`,
    `GET /latest/user-data HTTP/1.1\r\n${HOST}\r\n`.repeat(50),
  ];
  await inParallel(SLOW_CLIENTS, attack, async () => {
    const kind = attack.random(texts.length);
    const socket = open(attack);
    const startedAtMs = performance.now();
    if (kind === 2) {
      socket.pause();
      socket.write(texts[kind] ?? '');
    } else {
      socket.resume();
    }
    for (let sent = 0; !socket.destroyed && !attack.signal.aborted; sent++) {
      if (kind !== 2 && socket.writable) socket.write(texts[kind]?.[sent] ?? 'a');
      if (kind === 2 && performance.now() - startedAtMs > SLOW_LIMIT_MS / 4) break;
      if (performance.now() - startedAtMs > SLOW_LIMIT_MS) {
        attack.problem('a slow client was never cut off');
        break;
      }
      await pause(attack, SLOW_STEP_MS);
    }
    attack.count(['slow headers', 'slow bodies', 'unread answers'][kind] ?? '');
    socket.destroy();
  });
};

/** Sends many requests in one packet. The answers must be in order. */
export const pipeline: Attacker = async (attack) => {
  const paths = ['/latest/meta-data/instance-id', '/latest/meta-data/mac'];
  const requests = Array.from(
    { length: PIPELINED_REQUESTS },
    (_item, index) => `GET ${paths[index % 2]} HTTP/1.1\r\n${HOST}\r\n`,
  );
  await inParallel(4, attack, async () => {
    const socket = open(attack);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('end', () => socket.destroy());
    socket.setTimeout(5000, () => socket.destroy());
    socket.write(`${requests.join('')}GET / HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    await once(socket, 'close');
    // A status line may follow a body without a line break.
    const answers = text.split('HTTP/1.1 ').slice(1, PIPELINED_REQUESTS + 1);
    attack.count('connections');
    attack.count('answers', answers.length);
    answers.forEach((answer, index) => {
      const isMac = /\r\n\r\n..:/.test(answer);
      if (answer.startsWith('200') && isMac !== (index % 2 === 1)) {
        attack.problem(`pipelined answer ${index} is out of order: ${answer}`);
      }
    });
  });
};

/** Opens connections as fast as possible, and closes, holds or resets them. */
export const flood: Attacker = async (attack) => {
  await inParallel(FLOODERS, attack, async () => {
    const socket = open(attack);
    attack.count('connections');
    socket.setTimeout(2000, () => socket.destroy());
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false);
    if (!isOpen) attack.count('refused');
    const kind = attack.random(8);
    if (kind === 0) await pause(attack, HELD_MS);
    if (kind < 4) socket.resetAndDestroy();
    else socket.destroy();
  });
};

function open({ namespace, signal }: Attack): Socket {
  const socket = connectFromGuest(namespace);
  socket.on('error', () => undefined);
  const stop = (): void => void socket.destroy();
  signal.addEventListener('abort', stop);
  socket.on('close', () => signal.removeEventListener('abort', stop));
  return socket;
}

async function inParallel(
  workers: number,
  { signal }: Attack,
  body: () => Promise<void>,
): Promise<void> {
  const work = async (): Promise<void> => {
    while (!signal.aborted) await body();
  };
  await Promise.all(Array.from({ length: workers }, work));
}

async function pause({ signal }: Attack, milliseconds: number): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
}
