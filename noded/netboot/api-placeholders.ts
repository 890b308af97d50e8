import { CallError } from './template/template-error.ts';
import { fixed, Struct, variadic, type GoFunction, type Value } from './template/values.ts';

/**
 * Stands for each token of dr-provision's API and grants nothing. It is not empty: published
 * scripts fetch a token when theirs is empty.
 */
const NO_TOKEN = 'no-token';

/**
 * Returns the members of dr-provision that name its API or its tokens, with constant values.
 * Published templates write them into scripts of its agent, which most installations do not need.
 * The URLs are the file root: dr-provision serves the files of machines at each of them.
 * @param used collects the members that a file reads
 */
export function constantMembers(
  baseUrl: string,
  used: Set<string>,
): Readonly<Record<string, GoFunction>> {
  const constant = (name: string, value: Value): readonly [string, GoFunction] => [
    name,
    variadic([], 'any', () => {
      used.add(`.${name}`);
      return value;
    }),
  ];
  return Object.fromEntries([
    ...URLS.map((name) => constant(name, baseUrl)),
    ...TOKENS.map((name) => constant(name, NO_TOKEN)),
    constant('Info', infoOf(new URL(baseUrl))),
  ]);
}

const URLS = [
  'ApiHostURL',
  'ApiURL',
  'ProvisionerHostURL',
  'SecureProvisionerHostURL',
  'SecureProvisionerURL',
] as const;
const TOKENS = ['GenerateInfiniteToken', 'GenerateProfileToken', 'GenerateToken'] as const;

/**
 * Returns `.Info`, which describes the server. There is no API, so its port is the file server's.
 */
function infoOf({ hostname, port }: URL): Struct {
  const filePort = BigInt(port || '80');
  return new Struct('Info', {
    Address: hostname,
    ApiPort: filePort,
    Arch: 'amd64',
    BinlEnabled: false,
    DhcpEnabled: true,
    FilePort: filePort,
    HaId: '',
    Id: 'gnt',
    LocalId: 'gnt',
    Os: 'linux',
    ProvisionerEnabled: true,
    SecureFilePort: filePort,
    SecureProvisionerEnabled: false,
    ServerHostname: '',
    TftpEnabled: false,
    Version: '',
  });
}

/** Members of dr-provision that only its tasks and stages have. */
const REFUSED = ['CurrentJob', 'Stage', 'Task'] as const;

export function refusedMembers(): Readonly<Record<string, GoFunction>> {
  return Object.fromEntries(
    REFUSED.map((name) => [
      name,
      fixed([], () => {
        throw new CallError(`.${name} is not supported: BootEnvs have no tasks and no stages`);
      }),
    ]),
  );
}
