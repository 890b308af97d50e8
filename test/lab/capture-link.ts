import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { JoinedHost } from '../bench/support/joined-hosts.ts';

/** Prints a line when it listens, and its counts at the end of its input. */
const PROGRAM = `import json, select, socket, struct, sys
ETH_P_ALL, SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 3, 33, 263, 6
needles = [bytes.fromhex(text) for text in sys.stdin.readline().split()]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
raw.bind((sys.argv[1], 0))
frames = size = 0
found = [0] * len(needles)
print("ready", flush=True)
while True:
  ready, _, _ = select.select([raw, sys.stdin], [], [])
  if raw in ready:
    frame = raw.recv(1 << 17)
    frames += 1; size += len(frame)
    for index, needle in enumerate(needles):
      if needle in frame: found[index] += 1
  elif ready: break
_, dropped = struct.unpack("II", raw.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
print(json.dumps({"frames": frames, "bytes": size, "dropped": dropped, "found": found}))
`;

const counts = z.object({
  frames: z.number(),
  bytes: z.number(),
  /** Frames that came faster than they were read. */
  dropped: z.number(),
  /** Frames with each of the values. */
  found: z.number().array(),
});
export type Captured = z.infer<typeof counts>;

/** Reads all frames of a host's link during some work, and looks for values in each. */
export async function captureLink(
  { namespace, link }: JoinedHost,
  values: readonly string[],
  work: () => Promise<void>,
): Promise<Captured> {
  const inside = [`--net=/run/netns/${namespace}`, 'python3', '-c', PROGRAM, link];
  const capture = spawn('nsenter', inside, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: capture.stdout })[Symbol.asyncIterator]();
  const ended = once(capture, 'close');
  try {
    capture.stdin.write(`${values.map((each) => Buffer.from(each).toString('hex')).join(' ')}\n`);
    await lines.next();
    await work();
    capture.stdin.end();
    // Readline yields strings.
    const { value } = await lines.next();
    return counts.parse(JSON.parse(value ?? ''));
  } finally {
    capture.stdin.end();
    await ended;
  }
}

/** Sends a value in plain text over TCP between two hosts, often enough to be captured. */
export async function sendPlain(from: JoinedHost, to: JoinedHost, value: string): Promise<void> {
  const start = (host: JoinedHost, program: string) =>
    spawn('nsenter', [`--net=/run/netns/${host.namespace}`, process.execPath, '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  const receiver = start(
    to,
    `require('node:net').createServer((socket) => socket.resume().on('end', () => process.exit(0)))
       .listen(5001, '${to.address}', () => console.log('ready'))`,
  );
  const received = once(receiver, 'close');
  await once(receiver.stdout, 'data');
  const sender = start(
    from,
    `require('node:net').connect(5001, '${to.address}').end('${value}'.repeat(20000))`,
  );
  await Promise.all([received, once(sender, 'close')]);
}
