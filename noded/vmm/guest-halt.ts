import { z } from 'zod';
import type { GuestHalt } from './machine.ts';
import type { QmpEvent } from './qmp-client.ts';

/**
 * The state in which QEMU stops a guest by itself at a failed write (RunState in run-state.json).
 */
const STOPPED_BY_ERROR = 'io-error';

const runState = z.object({ status: z.string() });
const blockDevices = z.array(z.object({ 'io-status': z.string().optional() }));

/**
 * The reason that an event gives for a halt: QEMU stops the guest at a write that finds the host
 * full, and repeats the write when the guest is told to go on, so nothing of it is lost.
 */
export function haltReasonOf({ name, data }: QmpEvent): GuestHalt['reason'] | undefined {
  if (name !== 'BLOCK_IO_ERROR' || data['action'] !== 'stop') return undefined;
  return data['nospace'] === true ? 'disk-full' : 'disk-error';
}

/**
 * What the answers to `query-status` and `query-block` tell: null for a guest that was not halted.
 */
export function readHaltReason(status: unknown, devices: unknown): GuestHalt['reason'] | null {
  if (runState.parse(status).status !== STOPPED_BY_ERROR) return null;
  const isFull = blockDevices.parse(devices).some((device) => device['io-status'] === 'nospace');
  return isFull ? 'disk-full' : 'disk-error';
}
