import { createWriteStream, read, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { inNetworkNamespace, openTap } from '#shared/sys/network-sockets.ts';
import { parseWireState, WIRE_DEVICE, type WireState } from './wire.ts';

/**
 * Connects hosts, each with a TAP in its network namespace: `node wire-process.ts CAPTURE
 * NAMESPACE…`. Standard input sets the state of each end. All frames also go to the capture. The
 * process must be killed, because a pending read of a TAP cannot be canceled.
 */
const FRAME_BYTES = 65_536;
const [capturePath = '', ...namespaces] = process.argv.slice(2);
const capture = createWriteStream(capturePath);
const ends = namespaces.map((name) =>
  inNetworkNamespace(`/run/netns/${name}`, () => openTap(WIRE_DEVICE)),
);
const states: WireState[] = ends.map(() => ({ isCut: false, delayMs: 0 }));

createInterface({ input: process.stdin }).on('line', take);
for (const index of ends.keys()) listen(index);
process.stdout.write('ready\n');

function take(line: string): void {
  const { end, state } = parseWireState(line);
  states[end] = state;
}

function listen(from: number): void {
  const frame = Buffer.allocUnsafe(FRAME_BYTES);
  const fd = ends[from];
  if (fd === undefined) return;
  read(fd, frame, 0, FRAME_BYTES, null, (error, length) => {
    // The device is down or not up yet.
    if (error !== null) setTimeout(() => listen(from), 10);
    else {
      const sent = Buffer.from(frame.subarray(0, length));
      capture.write(sent);
      for (const to of ends.keys()) if (to !== from) carry(sent, from, to);
      listen(from);
    }
  });
}

function carry(frame: Buffer, from: number, to: number): void {
  const [here, there] = [states[from], states[to]];
  if (!here || !there || here.isCut || there.isCut) return;
  const delayMs = here.delayMs + there.delayMs;
  if (delayMs === 0) deliver(frame, to);
  else setTimeout(() => deliver(frame, to), delayMs);
}

function deliver(frame: Buffer, to: number): void {
  try {
    writeSync(ends[to] ?? -1, frame);
  } catch {
    // The device is down or full. Like a real network, this loses frames.
  }
}
