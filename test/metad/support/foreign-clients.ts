import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { cachedTree } from '../../lab/cached-tree.ts';
import type { Guest } from './channel-lab.ts';

/** Clients of metadata services, and the Python modules that they load. */
const PACKAGES = [
  ...['amazon-ec2-utils', 'cloud-guest-utils', 'ganeti-3.0', 'libcurl3-gnutls', 'python3-bitarray'],
  'python3-botocore',
  ...['python3-cffi-backend', 'python3-cryptography', 'python3-dateutil', 'python3-jmespath'],
  ...['python3-openssl', 'python3-pycurl', 'python3-pyinotify', 'python3-pyparsing'],
  ...[
    'python3-simplejson',
    'python3-six',
    'python3-urllib3',
    'python3-requests',
    'python3-certifi',
    'python3-chardet',
    'python3-idna',
  ],
];
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000;

/** Returns the unpacked Debian packages of foreign clients, as `unpackPackages`. */
export function foreignClients(): Promise<string> {
  return unpackPackages('foreign-clients', PACKAGES);
}

/**
 * Unpacks Debian packages without installation, once for the build cache.
 * @returns the folder that stands for `/`; it is read-only
 */
export function unpackPackages(name: string, packages: readonly string[]): Promise<string> {
  return cachedTree(name, packages, async (root, scratch) => {
    const download = async (): Promise<unknown> =>
      await run('apt-get', ['download', '-qq', ...packages], {
        cwd: scratch,
        timeoutMs: DOWNLOAD_TIMEOUT_MS,
      });
    // The lists may be older than the mirror.
    await download().catch(async () => {
      await run('apt-get', ['update', '-qq'], { timeoutMs: DOWNLOAD_TIMEOUT_MS });
      await download();
    });
    for (const file of await readdir(scratch)) {
      if (file.endsWith('.deb')) await run('dpkg-deb', ['-x', join(scratch, file), root]);
    }
  });
}

/** A Python program for `runPython`: botocore's requests to a metadata service. */
export const BOTOCORE = `
import json
from botocore.utils import IMDSFetcher, InstanceMetadataFetcher, InstanceMetadataRegionFetcher
fetcher = IMDSFetcher(timeout=5, num_attempts=1)
token = fetcher._fetch_metadata_token()
answer = fetcher._get_request('latest/meta-data/instance-id', None, token=token)
print(json.dumps({
  'hasToken': bool(token),
  'id': answer.text,
  'region': InstanceMetadataRegionFetcher(timeout=5, num_attempts=1).retrieve_region(),
  'credentials': InstanceMetadataFetcher(timeout=5, num_attempts=1).retrieve_iam_role_credentials(),
}))`;

export const AWS_SDK_CRAWL = join(import.meta.dirname, 'aws-sdk-crawl.ts');

/**
 * Runs a Python program in a guest's network, with the modules of `tree` and the libraries of
 * `clients`.
 * @returns its output as JSON
 */
export async function runPython(
  guest: Guest,
  { clients, tree }: { readonly clients: string; readonly tree: string },
  program: string,
  ...args: string[]
): Promise<unknown> {
  const output = await guest.run(
    'env',
    ...Object.entries(pythonEnvironment({ clients, tree })).map(
      ([name, value]) => `${name}=${value}`,
    ),
    ...['/usr/bin/python3', '-c', program, ...args],
  );
  return JSON.parse(output);
}

/** Returns the environment of a Python program with the modules of `tree`. */
export function pythonEnvironment({
  clients,
  tree,
}: {
  readonly clients: string;
  readonly tree: string;
}): Record<string, string> {
  const modules = ['usr/share/ganeti/3.0', 'usr/lib/python3/dist-packages'];
  return {
    PYTHONPATH: modules.map((path) => join(tree, path)).join(':'),
    LD_LIBRARY_PATH: join(clients, 'usr/lib/x86_64-linux-gnu'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
}
