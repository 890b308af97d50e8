import { readSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import koffi from 'koffi';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { ChannelTap } from '../../../../noded/net/channel/channel-network.ts';
import type { ChannelGuest } from '../../../../noded/net/channel/nft-rules.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { BROADCAST_MAC, arp, describeFrame, ping } from './frames.ts';
import type { Ethernet, Seen } from './frames.ts';

const fcntl = koffi.load('libc.so.6').func('int fcntl(int fd, int command, int value)');
const F_SETFL = 4;
const O_RDWR_NONBLOCK = 0o2 | 0o4000;
/** struct virtio_net_hdr, before every frame. */
const VNET_HEADER_BYTES = 10;
const DEADLINE_MS = 10_000;

/** The guest's end of a TAP: what QEMU would hold. Sends and sees raw frames. */
export class RawGuest {
  readonly ip: string;
  readonly mac: string;
  /** Known after meetHost(). */
  hostMac = BROADCAST_MAC;
  readonly #fd: number;
  #sequence = 0;
  #seen: Seen[] = [];

  constructor(tap: ChannelTap, guest: ChannelGuest) {
    this.#fd = tap.fd;
    this.ip = guest.ip;
    this.mac = guest.mac;
    if ((fcntl(this.#fd, F_SETFL, O_RDWR_NONBLOCK) as number) < 0) throw new Error('fcntl');
  }

  /** Asks for the service's MAC, as every guest does first. */
  async meetHost(): Promise<void> {
    const link = { from: this.mac, to: BROADCAST_MAC };
    this.send(
      arp(link, {
        operation: 'request',
        senderMac: this.mac,
        senderIp: this.ip,
        targetIp: SERVICE_IPV4,
      }),
    );
    this.hostMac = (await this.waitFor((seen) => seen.kind === 'arp')).from;
    this.takeSeen();
  }

  /** From the guest to the host. */
  get link(): Ethernet {
    return { from: this.mac, to: this.hostMac };
  }

  send(...frames: readonly Buffer[]): void {
    for (const frame of frames) {
      writeSync(this.#fd, Buffer.concat([Buffer.alloc(VNET_HEADER_BYTES), frame]));
    }
  }

  /** Everything that came in until now and was not taken yet. */
  takeSeen(): readonly Seen[] {
    this.#read();
    const seen = this.#seen;
    this.#seen = [];
    return seen;
  }

  /**
   * Waits until the host has processed all earlier frames: a TAP keeps the order, so a valid ping
   * is answered last.
   * @returns the other received frames
   */
  async settle(): Promise<readonly Seen[]> {
    this.#sequence += 1;
    const sequence = this.#sequence;
    this.send(ping(this.link, { source: this.ip, destination: SERVICE_IPV4 }, sequence));
    const isAnswer = (seen: Seen): boolean =>
      seen.kind === 'icmp' && seen.detail === 0 && seen.sequence === sequence;
    await this.waitFor(isAnswer);
    return this.takeSeen().filter((seen) => !isAnswer(seen));
  }

  /** @throws Error when no such frame comes */
  async waitFor(matches: (seen: Seen) => boolean): Promise<Seen> {
    const endMs = performance.now() + DEADLINE_MS;
    while (performance.now() < endMs) {
      this.#read();
      const found = this.#seen.find(matches);
      if (found) return found;
      // A TAP's descriptor cannot be waited for in this event loop.
      await sleep(2);
    }
    throw new Error(`no such frame; seen: ${JSON.stringify(this.#seen)}`);
  }

  #read(): void {
    const buffer = Buffer.alloc(65_600);
    for (;;) {
      let length;
      try {
        length = readSync(this.#fd, buffer);
      } catch (error) {
        if (systemCodeOf(error) === 'EAGAIN') return;
        throw error;
      }
      this.#seen.push(describeFrame(buffer.subarray(VNET_HEADER_BYTES, length)));
    }
  }
}
