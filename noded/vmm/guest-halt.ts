import { z } from 'zod';
import type { GuestHalt } from './machine.ts';
import type { QmpEvent } from './qmp-client.ts';

/** State of a guest that QEMU stopped after a failed write (RunState in run-state.json). */
const STOPPED_BY_ERROR = 'io-error';

const runState = z.object({ status: z.string() });
const blockDevices = z.array(z.object({ 'io-status': z.string().optional() }));

/**
 * Returns the reason when an event reports a halt. QEMU stops the guest at a write that finds the
 * host's disk full. It repeats the write after `cont`, so that no data is lost.
 */
export function haltReasonOf({ name, data }: QmpEvent): GuestHalt['reason'] | undefined {
  if (name !== 'BLOCK_IO_ERROR' || data['action'] !== 'stop') return undefined;
  return data['nospace'] === true ? 'disk-full' : 'disk-error';
}

/**
 * Reads the answers to `query-status` and `query-block`. Returns null for a guest that was not
 * halted.
 */
export function readHaltReason(status: unknown, devices: unknown): GuestHalt['reason'] | null {
  if (runState.parse(status).status !== STOPPED_BY_ERROR) return null;
  const isFull = blockDevices.parse(devices).some((device) => device['io-status'] === 'nospace');
  return isFull ? 'disk-full' : 'disk-error';
}
