import { run } from '#shared/process/run.ts';
import { SUITE } from './apt-sources.ts';

const TIMEOUT_MS = 30 * 60_000;

export interface MirrorOptions {
  /** Lines for sources.list. */
  readonly sources: readonly string[];
  /** `http_proxy` and similar variables, for apt. */
  readonly proxyEnvironment: Readonly<Record<string, string>>;
}

export interface DebianTreeOptions extends MirrorOptions {
  /** Default: the appliance's. */
  readonly suite?: string;
  readonly variant: 'essential' | 'minbase';
  readonly packages: readonly string[];
  /** Patterns of paths that dpkg skips. */
  readonly excludedPaths: readonly string[];
  /** Further options of mmdebstrap. */
  readonly options?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Creates the tree of a Debian root at `path`, which must not exist. mmdebstrap runs in its own
 * namespaces, which end with this process, so that no mount and no process remains.
 */
export async function makeDebianTree(path: string, options: DebianTreeOptions): Promise<void> {
  await run(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL'],
      ...['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL'],
      ...['mmdebstrap', '--mode=root', `--variant=${options.variant}`, '--format=directory'],
      `--include=${options.packages.join(',')}`,
      '--aptopt=APT::Install-Recommends "false"',
      ...options.excludedPaths.map((excluded) => `--dpkgopt=path-exclude=${excluded}`),
      ...(options.options ?? []),
      ...[options.suite ?? SUITE, path, ...options.sources],
    ],
    {
      timeoutMs: TIMEOUT_MS,
      ...(options.signal && { signal: options.signal }),
      env: {
        ...options.proxyEnvironment,
        ...options.environment,
        DEBIAN_FRONTEND: 'noninteractive',
      },
    },
  );
}
