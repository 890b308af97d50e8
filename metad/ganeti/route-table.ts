/** Finds the device behind an address, from /proc/net/route. */
export interface RouteTable {
  deviceOf(ip: string): string | null;
}

interface Route {
  readonly device: string;
  readonly destination: number;
  readonly mask: number;
}

const FLAG_UP = 1;
const FLAG_GATEWAY = 2;

/**
 * @param text of /proc/net/route: addresses are hexadecimal in the machine's byte order, little
 * endian
 */
export function parseRouteTable(text: string): RouteTable {
  const hosts = new Map<number, string>();
  const networks: Route[] = [];
  for (const line of text.split('\n').slice(1)) {
    const [device, destination, , flags, , , , mask] = line.trim().split(/\s+/);
    if (!device || !destination || !flags || !mask) continue;
    const bits = Number.parseInt(flags, 16);
    if ((bits & FLAG_UP) === 0 || (bits & FLAG_GATEWAY) !== 0) continue;
    const route = { device, destination: fromHex(destination), mask: fromHex(mask) };
    if (route.mask === 0xffffffff) hosts.set(route.destination, device);
    else networks.push(route);
  }
  // The default route matches every address, so it identifies no device.
  const specific = networks.filter(({ mask }) => mask !== 0).sort((a, b) => b.mask - a.mask);
  return {
    deviceOf: (ip) => {
      const address = toNumber(ip);
      const host = hosts.get(address);
      if (host !== undefined) return host;
      const route = specific.find(
        ({ destination, mask }) => (address & mask) >>> 0 === destination,
      );
      return route?.device ?? null;
    },
  };
}

function fromHex(text: string): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(Number.parseInt(text, 16) >>> 0);
  return bytes.readUInt32BE();
}

function toNumber(ip: string): number {
  return ip.split('.').reduce((number, part) => ((number << 8) | Number(part)) >>> 0, 0);
}
