import { existsSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import type { GuestCard } from './nat-guests.ts';

/**
 * Refuses a NIC whose port would take the place of another port of its bridge. Call it before the
 * rules change.
 * @param bridgeMac the MAC of the network's gateway on this node
 * @throws AppError CONFLICT, NETWORK_SETUP
 */
export function refuseGuest(
  { uuid, mac, name }: Pick<GuestCard, 'uuid' | 'mac' | 'name'>,
  device: string,
  bridgeMac: string,
): void {
  if (mac === bridgeMac) {
    throw new AppError('CONFLICT', `the MAC address ${mac} of '${name}' belongs to the gateway`, {
      details: { mac },
      hint: `Generate another one: gnt-instance modify --net ${uuid}:modify,mac=generate ${name}`,
    });
  }
  if (existsSync(`/sys/class/net/${device}`)) {
    throw new AppError(
      'NETWORK_SETUP',
      `cannot open the TAP ${device} for '${name}': another process holds it`,
      {
        details: { device },
        hint: `Find the process: grep -ls ${device} /proc/[0-9]*/fdinfo/*`,
      },
    );
  }
}
