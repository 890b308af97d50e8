import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import {
  BROADCAST_MAC,
  arp,
  ethernet,
  icmp,
  neighbourAdvertisement,
  ping,
  routerAdvertisement,
  tcp,
  udp,
} from './frames.ts';
import type { Ethernet, Ip } from './frames.ts';
import type { RawGuest } from './raw-guest.ts';

export interface Parties {
  /** The attacker. */
  readonly alice: RawGuest;
  /** Its neighbour on the same node. */
  readonly bob: RawGuest;
  /** From the attacker to the service, as it should be. */
  readonly own: Ip;
  readonly own6: Ip;
}

/** An attack by a hostile guest, and its frames. */
export type Attack = readonly [name: string, frames: (p: Parties) => readonly Buffer[]];

const STRANGER_MAC = 'aa:00:00:00:09:99';
export const HIDDEN_PORT = 22;

const syn = (link: Ethernet, source: string, destination: string, to = 80): Buffer =>
  tcp(link, { source, destination }, { from: 31_000 + to, to }, 'syn');

export const attacks: readonly Attack[] = [
  ["its neighbour's source address", (p) => [syn(p.alice.link, p.bob.ip, SERVICE_IPV4)]],
  ['a second address of its own', (p) => [syn(p.alice.link, '169.254.9.77', SERVICE_IPV4)]],
  ["a container's address behind it", (p) => [syn(p.alice.link, '172.17.0.2', SERVICE_IPV4)]],
  ["the host's address as source", (p) => [syn(p.alice.link, SERVICE_IPV4, SERVICE_IPV4)]],
  ['a loopback source', (p) => [syn(p.alice.link, '127.0.0.1', SERVICE_IPV4)]],
  [
    'a forged source MAC',
    (p) => [syn({ from: STRANGER_MAC, to: p.alice.hostMac }, p.alice.ip, SERVICE_IPV4)],
  ],
  [
    "its neighbour's whole identity",
    (p) => [syn({ from: p.bob.mac, to: p.alice.hostMac }, p.bob.ip, SERVICE_IPV4)],
  ],
  [
    'TCP to another port of the service',
    (p) => [syn(p.alice.link, p.alice.ip, SERVICE_IPV4, HIDDEN_PORT)],
  ],
  ['TCP to its neighbour', (p) => [syn(p.alice.link, p.alice.ip, p.bob.ip)]],
  ['TCP to loopback', (p) => [syn(p.alice.link, p.alice.ip, '127.0.0.1')]],
  ['TCP to the world', (p) => [syn(p.alice.link, p.alice.ip, '192.0.2.1')]],
  [
    'a loose source route through the host to its neighbour',
    (p) => {
      const route = Buffer.from([0x83, 7, 4, ...p.bob.ip.split('.').map(Number), 0]);
      return [tcp(p.alice.link, { ...p.own, options: route }, { from: 31_500, to: 80 }, 'syn')];
    },
  ],
  [
    'an answer to nothing',
    (p) => [
      tcp(p.alice.link, p.own, { from: 2223, to: 45_000 }, 'syn-ack', 1),
      tcp(p.alice.link, p.own, { from: 2223, to: 45_000 }, 'ack', 1),
    ],
  ],
  ['UDP to another port', (p) => [udp(p.alice.link, p.own, { from: 1000, to: 53 }, 'query')]],
  [
    'a broadcast that is not DHCP',
    (p) => [
      udp(
        { from: p.alice.mac, to: BROADCAST_MAC },
        { source: p.alice.ip, destination: '255.255.255.255' },
        { from: 1000, to: 53 },
        'query',
      ),
    ],
  ],
  [
    "DHCP in its neighbour's name",
    (p) => [
      udp(
        { from: p.bob.mac, to: BROADCAST_MAC },
        { source: '0.0.0.0', destination: '255.255.255.255' },
        { from: 68, to: 67 },
        'discover',
      ),
    ],
  ],
  [
    'a ping to the broadcast address',
    (p) => [ping(p.alice.link, { source: p.alice.ip, destination: '255.255.255.255' }, 9000)],
  ],
  [
    'an ICMP redirect',
    (p) => [
      icmp(
        p.alice.link,
        p.own,
        5,
        1,
        Buffer.concat([Buffer.from([169, 254, 9, 1]), Buffer.alloc(28)]),
      ),
    ],
  ],
  [
    "ARP in its neighbour's name",
    (p) => [
      arp(
        { from: p.alice.mac, to: BROADCAST_MAC },
        {
          operation: 'request',
          senderMac: p.alice.mac,
          senderIp: p.bob.ip,
          targetIp: SERVICE_IPV4,
        },
      ),
    ],
  ],
  [
    'ARP with a forged sender MAC, in the body or around it',
    (p) => [
      arp(
        { from: p.alice.mac, to: BROADCAST_MAC },
        {
          operation: 'request',
          senderMac: STRANGER_MAC,
          senderIp: p.alice.ip,
          targetIp: SERVICE_IPV4,
        },
      ),
      arp(
        { from: STRANGER_MAC, to: BROADCAST_MAC },
        {
          operation: 'request',
          senderMac: p.alice.mac,
          senderIp: p.alice.ip,
          targetIp: SERVICE_IPV4,
        },
      ),
    ],
  ],
  [
    "ARP claims for the service's and its neighbour's address",
    (p) =>
      [SERVICE_IPV4, p.bob.ip].flatMap((senderIp) => [
        arp(p.alice.link, {
          operation: 'reply',
          senderMac: p.alice.mac,
          senderIp,
          targetIp: SERVICE_IPV4,
        }),
        arp(
          { from: p.alice.mac, to: BROADCAST_MAC },
          { operation: 'request', senderMac: p.alice.mac, senderIp, targetIp: senderIp },
        ),
      ]),
  ],
  [
    'ARP for its neighbour and for loopback',
    (p) =>
      [p.bob.ip, '127.0.0.1'].map((targetIp) =>
        arp(
          { from: p.alice.mac, to: BROADCAST_MAC },
          { operation: 'request', senderMac: p.alice.mac, senderIp: p.alice.ip, targetIp },
        ),
      ),
  ],
  [
    'a router advertisement',
    (p) => [
      routerAdvertisement(
        { from: p.alice.mac, to: '33:33:00:00:00:01' },
        { source: p.own6.source, destination: 'ff02::1' },
        '2001:db8::',
      ),
    ],
  ],
  ['a global IPv6 source', (p) => [syn(p.alice.link, '2001:db8::5', SERVICE_IPV6)]],
  ["the host's IPv6 address as source", (p) => [syn(p.alice.link, SERVICE_IPV6, SERVICE_IPV6)]],
  [
    'IPv6 TCP to another port',
    (p) => [syn(p.alice.link, p.own6.source, SERVICE_IPV6, HIDDEN_PORT)],
  ],
  [
    'an IPv6 forged source MAC',
    (p) => [syn({ from: STRANGER_MAC, to: p.alice.hostMac }, p.own6.source, SERVICE_IPV6)],
  ],
  [
    "an advertisement of the host's IPv6 address",
    (p) => [neighbourAdvertisement(p.alice.link, p.own6, SERVICE_IPV6)],
  ],
  ['an IPv6 redirect', (p) => [icmp(p.alice.link, p.own6, 137, 0, Buffer.alloc(36))]],
  [
    'frames with a VLAN tag or of an unknown protocol',
    (p) => [
      ethernet(p.alice.link, 0x8100, Buffer.concat([Buffer.from([0, 1, 8, 0]), Buffer.alloc(42)])),
      ethernet(p.alice.link, 0x88b5, Buffer.alloc(46)),
    ],
  ],
  [
    'runts and garbage',
    (p) => [
      ethernet(p.alice.link, 0x0800, Buffer.alloc(5)),
      Buffer.alloc(14),
      Buffer.alloc(60, 0xff),
    ],
  ],
];
