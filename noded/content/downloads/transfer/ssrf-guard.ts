import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { type Depth, depthOf, isDeeper, isLoopback } from './address-policy.ts';
import { isMarkedRemote, parseRemoteHosts, type RemoteHosts } from './remote-hosts.ts';
import { literalAddressOf } from './source-url.ts';

/** An address that may not be asked. */
export class ForbiddenAddressError extends Error {}

type LookupCallback = (
  error: Error | null,
  address: string | LookupAddress[],
  family?: number,
) => void;
const lookupAll = promisify(dnsLookup);

/**
 * Why a URL's host may not be asked, as far as its letters tell. Names are judged by what they
 * resolve to, when they do.
 */
export function refusalOf(url: URL): string | undefined {
  const literal = literalAddressOf(url);
  return literal === undefined || depthOf(literal) !== null
    ? undefined
    : `${literal} is a link-local address or a cloud's metadata service`;
}

/**
 * How near a URL's host is, as far as its letters tell; null for one that is never asked. A name
 * is somebody's on the internet, unless it can be this host's alone.
 */
export function depthOfHost(url: URL): Depth | null {
  const literal = literalAddressOf(url);
  if (literal !== undefined) return depthOf(literal);
  return isNameOfThisHost(url.hostname) ? 'host' : 'public';
}

/**
 * Why a user of the remote API may not name a URL, as far as its letters tell.
 * @param remoteHosts of this host's own networks, those that may be named
 */
export function remoteRefusalOf(url: URL, remoteHosts: readonly string[]): string | undefined {
  const depth = depthOfHost(url);
  const literal = literalAddressOf(url) ?? '';
  if (depth === null) return refusalOf(url);
  const isTheirs =
    depth === 'public' || parseRemoteHosts(remoteHosts).includes(literal, literal || url.hostname);
  return isTheirs ? undefined : beyondRemote(url.hostname, depth);
}

/**
 * Which addresses one download may connect to. The operator chose the first host, and a user of the
 * remote API one of the internet or one that the operator named; from then on, redirections and
 * later attempts lead to addresses that are no nearer to this host than the one that answered
 * first. What is judged is the address that is connected to, never a name: whoever owns a name may
 * let it point anywhere, and elsewhere a second later.
 */
export class SsrfGuard {
  #first: Depth | undefined;
  /** Undefined for what the operator asked for. */
  readonly #remoteHosts: RemoteHosts | undefined;

  /** @param remoteHosts of this host's own networks, those that the remote API may name */
  constructor(url: URL, remoteHosts: readonly string[]) {
    if (isMarkedRemote(url)) this.#remoteHosts = parseRemoteHosts(remoteHosts);
  }

  /** The first host answered, from this address. */
  answered(address: string | undefined): void {
    if (address !== undefined) this.#first ??= depthOf(address) ?? undefined;
  }

  /** @throws ForbiddenAddressError when the URL's host is an address that is out of reach */
  checkLiteral(url: URL): void {
    const literal = literalAddressOf(url);
    const refusal = literal === undefined ? undefined : this.#refusalOf(literal, literal);
    if (refusal !== undefined) throw new ForbiddenAddressError(refusal);
  }

  /** `dns.lookup` that gives only addresses within reach. */
  readonly lookup = (host: string, options: LookupOptions, callback: LookupCallback): void => {
    dnsLookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      let allowed: LookupAddress[];
      try {
        allowed = this.#choose(host, addresses);
      } catch (refusal) {
        // All that `#choose` throws.
        return callback(refusal as ForbiddenAddressError, []);
      }
      const [first] = allowed;
      if (options.all || !first) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };

  /**
   * The address to give to a program that would resolve by itself.
   * @throws ForbiddenAddressError, or the resolver's error
   */
  async resolve(url: URL): Promise<string> {
    this.checkLiteral(url);
    const literal = literalAddressOf(url);
    if (literal !== undefined) return literal;
    const found = await lookupAll(url.hostname, { all: true, order: 'ipv4first' });
    return this.#choose(url.hostname, found)[0]?.address ?? '';
  }

  /** @throws ForbiddenAddressError when none is left */
  #choose(host: string, addresses: LookupAddress[]): LookupAddress[] {
    const refusals = addresses.map(({ address }) => this.#refusalOf(address, host));
    const allowed = addresses.filter((_, index) => refusals[index] === undefined);
    if (allowed.length > 0) return allowed;
    throw new ForbiddenAddressError(refusals[0] ?? `${host} does not resolve to an address`);
  }

  #refusalOf(address: string, host: string): string | undefined {
    const depth = depthOf(address);
    const shown = host === address ? address : `${host} (${address})`;
    if (depth === null) return `${shown} is a link-local address or a cloud's metadata service`;
    if (this.#isBeyondRemote(depth, address, host)) return beyondRemote(shown, depth);
    if (this.#first !== undefined) {
      if (!isDeeper(depth, this.#first)) return undefined;
      return `${shown} is an address of ${IN_WORDS[depth]}, but the first server was in ${IN_WORDS[this.#first]}`;
    }
    if (!isLoopback(address) || host === address || isNameOfThisHost(host)) return undefined;
    return `${shown} is an address of this host, but the name is not: write the address if you mean it`;
  }

  #isBeyondRemote(depth: Depth, address: string, host: string): boolean {
    if (depth === 'public' || this.#remoteHosts === undefined) return false;
    return !this.#remoteHosts.includes(address, host);
  }
}

function beyondRemote(shown: string, depth: Depth): string {
  return `${shown} is an address of ${IN_WORDS[depth]}; the remote API allows only hosts of the internet (change it with gnt-cluster modify --remote-hosts)`;
}

const IN_WORDS: Readonly<Record<Depth, string>> = {
  public: 'the internet',
  private: 'a private network',
  host: 'this host',
};

/** A name that nobody else can point at our loopback interface. */
function isNameOfThisHost(name: string): boolean {
  const bare = name.toLowerCase().replace(/\.$/, '');
  return (
    bare === 'localhost' ||
    bare.endsWith('.localhost') ||
    bare === hostname().toLowerCase() ||
    namesInHostsFile().has(bare)
  );
}

function namesInHostsFile(): ReadonlySet<string> {
  try {
    const lines = readFileSync('/etc/hosts', 'utf8').split('\n');
    return new Set(
      lines.flatMap((line) => (line.split('#', 1)[0] ?? '').toLowerCase().split(/\s+/).slice(1)),
    );
  } catch {
    // A host without that file has no names in it.
    return new Set();
  }
}
