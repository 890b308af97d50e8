import { createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { makeTinyLinux, TINY_INIT, type TinyLinux } from '../../lab/tiny-linux.ts';

/** Port of the service that the guest contacts. */
export const COUNTER_PORT = 8099;
/** Address of a guest without a DHCP answer. */
const OWN_ADDRESS = '169.254.1.1';
const POLL_MS = 20;
const LIMIT_MS = 120_000;

/** Writes each number to the disk and sends it to the host over HTTP before the next one. */
const INIT = `${TINY_INIT}$b ip link set lo up
$b ip link set eth0 up
$b udhcpc -i eth0 -f -q -n -t 10 -T 1 -s /lease || $b ip addr add ${OWN_ADDRESS}/16 dev eth0
n=0
while :; do
  n=$((n+1))
  echo "$n" | $b dd of=/dev/vda bs=512 seek=$((n % 100000)) conv=notrunc,fsync 2>/dev/null
  printf 'GET /?n=%s HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n\\r\\n' "$n" | $b nc -w 2 169.254.169.254 ${COUNTER_PORT} >/dev/null
done
`;

export function makeCountingGuest(lab: Lab): Promise<TinyLinux> {
  return makeTinyLinux(lab, 'counter.img', INIT);
}

export interface Counter {
  readonly server: Server;
  /** Waits for this many further numbers. */
  untilCounted(further: number): Promise<void>;
  /** Returns the gaps between numbers since index `from` in milliseconds, longest last. */
  gapsMs(from: number): readonly number[];
  count(): number;
}

/** Receives a guest's numbers, with or without a PROXY header. */
export function createCounter(): Counter {
  const times: number[] = [];
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      if (!/GET \/\?n=\d+ [^]*\r\n\r\n/.test(text)) return;
      text = '';
      times.push(performance.now());
      socket.end('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  return {
    server,
    count: () => times.length,
    untilCounted: async (further) => {
      const wanted = times.length + further;
      const deadlineMs = performance.now() + LIMIT_MS;
      while (times.length < wanted) {
        if (performance.now() > deadlineMs) throw new Error('the guest does not count any more');
        await sleep(POLL_MS);
      }
    },
    gapsMs: (from) => {
      const seen = times.slice(Math.max(0, from - 1));
      return seen
        .slice(1)
        .map((atMs, index) => atMs - (seen[index] ?? 0))
        .sort((a, b) => a - b);
    },
  };
}
