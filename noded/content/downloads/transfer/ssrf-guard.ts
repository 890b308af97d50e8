import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { type Depth, depthOf, isDeeper, isLoopback } from './address-policy.ts';
import { isMarkedRemote, parseRemoteHosts, type RemoteHosts } from './remote-hosts.ts';
import { literalAddressOf } from './source-url.ts';

export class ForbiddenAddressError extends Error {}

type LookupCallback = (
  error: Error | null,
  address: string | LookupAddress[],
  family?: number,
) => void;
const lookupAll = promisify(dnsLookup);

/**
 * Returns the reason why a URL's literal address is refused. Names are checked when they resolve.
 */
export function refusalOf(url: URL): string | undefined {
  const literal = literalAddressOf(url);
  return literal === undefined || depthOf(literal) !== null
    ? undefined
    : `${literal} is a link-local address or a cloud's metadata service`;
}

/**
 * Returns the distance of a URL's host by its spelling; null for a forbidden one. A name counts as
 * public unless it is this host's.
 */
export function depthOfHost(url: URL): Depth | null {
  const literal = literalAddressOf(url);
  if (literal !== undefined) return depthOf(literal);
  return isNameOfThisHost(url.hostname) ? 'host' : 'public';
}

/**
 * Returns the reason why a user of the remote API may not give a URL, by its spelling.
 * @param remoteHosts allowed hosts of private networks
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
 * Decides which addresses one download may connect to. The operator chooses the first host freely;
 * a user of the remote API chooses a host of the internet or one of `remoteHosts`. Redirections and
 * later attempts lead no nearer to this host than the first answering address. The guard checks the
 * address of the connection, never a name, since the owner of a name can change its address at any
 * moment.
 */
export class SsrfGuard {
  #first: Depth | undefined;
  /** Undefined for URLs from the operator. */
  readonly #remoteHosts: RemoteHosts | undefined;

  /** @param remoteHosts allowed hosts of private networks for URLs of the remote API */
  constructor(url: URL, remoteHosts: readonly string[]) {
    if (isMarkedRemote(url)) this.#remoteHosts = parseRemoteHosts(remoteHosts);
  }

  answered(address: string | undefined): void {
    if (address !== undefined) this.#first ??= depthOf(address) ?? undefined;
  }

  /** @throws ForbiddenAddressError when the URL's literal address is out of reach */
  checkLiteral(url: URL): void {
    const literal = literalAddressOf(url);
    const refusal = literal === undefined ? undefined : this.#refusalOf(literal, literal);
    if (refusal !== undefined) throw new ForbiddenAddressError(refusal);
  }

  /** Looks a name up like `dns.lookup`, and returns only addresses within reach. */
  readonly lookup = (host: string, options: LookupOptions, callback: LookupCallback): void => {
    dnsLookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      let allowed: LookupAddress[];
      try {
        allowed = this.#choose(host, addresses);
      } catch (refusal) {
        // `#choose` throws nothing else.
        return callback(refusal as ForbiddenAddressError, []);
      }
      const [first] = allowed;
      if (options.all || !first) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };

  /**
   * Returns the address for a program that would resolve the name itself.
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

/** Whether only this host can map the name to its loopback interface. */
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
    return new Set();
  }
}
