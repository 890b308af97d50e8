import type { NicReach } from '#shared/contract/guest-reach.ts';
import { networkGuest, type NetworkGuest } from '#shared/contract/network.ts';
import type { Logger } from '#shared/log/log.ts';
import type { Link } from '../channel/rtnetlink.ts';
import { formerTapOf, type NatNames, tapOf } from './nat-names.ts';
import { existsSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';

/** NIC of a guest, from the record of its instance. */
export interface GuestNic extends Omit<NetworkGuest, 'device' | 'reach'> {
  /** UUID of the NIC. */
  readonly uuid: string;
  /** Absent: `all`. */
  readonly reach?: NicReach | undefined;
}

export interface NatGuestsOptions {
  readonly names: NatNames;
  /** Lists NICs of this node's instances. Called when a TAP was not opened by this daemon. */
  readonly listNics: () => Promise<readonly GuestNic[]>;
  readonly logger: Logger;
}

/** Knows the guests of the TAPs of NAT networks. */
export function createNatGuests({ names, listNics, logger }: NatGuestsOptions) {
  const known = new Map<string, NetworkGuest>();
  const recognize = async (strangers: Set<string>): Promise<void> => {
    const nics = await listNics();
    const claim = (nic: GuestNic, device: string): boolean => {
      // A NIC without a valid guest must not remove the rules of another guest.
      const guest = networkGuest.safeParse({ ...nic, device });
      if (!guest.success || !strangers.delete(device)) return false;
      known.set(device, guest.data);
      return true;
    };
    const others = nics.filter((nic) => !claim(nic, tapOf(names, nic.uuid)));
    // An instance that an earlier release started keeps its TAP until it stops.
    for (const nic of others) claim(nic, formerTapOf(names, nic.mac));
    for (const device of strangers) logger.warn('nat.stranger', { device });
  };
  return {
    /** TAPs with a known guest. */
    devices: (): readonly string[] => [...known.keys()],
    /**
     * Finds the guests of the existing TAPs, and adds the arriving guest.
     * @throws AppError when a TAP was not opened by this daemon and the records cannot be read
     */
    settle: async (
      links: readonly Pick<Link, 'name'>[],
      arriving: NetworkGuest | undefined,
    ): Promise<readonly NetworkGuest[]> => {
      const taps = links.map(({ name }) => name).filter((name) => name.startsWith(names.tapPrefix));
      for (const device of known.keys()) if (!taps.includes(device)) known.delete(device);
      const strangers = new Set(taps).difference(known);
      if (strangers.size > 0) await recognize(strangers);
      if (arriving !== undefined) known.set(arriving.device, arriving);
      return [...known.values()];
    },
  };
}

export type NatGuests = ReturnType<typeof createNatGuests>;

/**
 * Refuses a NIC whose port would take the place of another port of its bridge. Call it before the
 * rules change.
 * @param bridgeMac the MAC of the network's gateway on this node
 * @throws AppError CONFLICT, NETWORK_SETUP
 */
export function refuseGuest(
  { uuid, mac, name }: Pick<GuestNic, 'uuid' | 'mac' | 'name'>,
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
