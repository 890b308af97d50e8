import type { PackageRepository } from '#shared/contract/boot-env.ts';
import { installsSystem } from '#shared/contract/boot-objects.ts';
import { isBehindProxy } from './kickstart-lines.ts';
import { installUrlOf, type RenderInput } from './render-input.ts';
import {
  installLines,
  type InstallPlaces,
  installRepositories,
  machineRepositories,
  repositoryLines,
  repoTypeOf,
  urlFor,
} from './repositories.ts';
import { CallError } from './template/template-error.ts';
import {
  fixed,
  isList,
  Struct,
  variadic,
  type Call,
  type GoFunction,
  type Value,
} from './template/values.ts';

/** The functions that repositories call. */
export interface RepositoryUses {
  /** Returns the value of `.R`. */
  readonly dot: () => Value;
  /** Reads a param; null for an absent one. */
  readonly param: (call: Call, name: string) => Value;
}

/** Returns `.Repos`, `.MachineRepos` and `.InstallRepos`. */
export function repositoryFunctions(
  input: RenderInput,
  uses: RepositoryUses,
): Readonly<Record<string, GoFunction>> {
  const { bootEnv, repositories } = input;
  const { Name } = bootEnv.OS;
  const shown = (call: Call, list: readonly PackageRepository[]): readonly Value[] => {
    call.spend(repositories().length + list.length * 10);
    return list.map((repository) => repositoryData(repository, input, uses));
  };
  return {
    Repos: variadic([], 'string', (call, _fixed, tags) => {
      const wanted = new Set(tags);
      return shown(
        call,
        repositories().filter(({ tag }) => wanted.has(tag)),
      );
    }),
    MachineRepos: fixed([], (call) => shown(call, machineRepositories(repositories(), Name))),
    InstallRepos: fixed([], (call) =>
      shown(call, installRepositories(repositories(), Name, placesOf(input))),
    ),
  };
}

function placesOf({ bootEnv, opened, mirrorUrl, ...input }: RenderInput): InstallPlaces {
  return {
    archive: opened && {
      name: bootEnv.Name,
      url: installUrlOf(input),
      hasRelease: opened.hasRelease,
    },
    // Package mirrors are open during installations only.
    mirrorUrl: installsSystem(bootEnv.Name) ? mirrorUrl : () => null,
  };
}

function repositoryData(
  repository: PackageRepository,
  { bootEnv, baseUrl }: RenderInput,
  { dot, param }: RepositoryUses,
): Struct {
  const { OS } = bootEnv;
  const proxyOf = (call: Call): string | null =>
    isBehindProxy(repository, new URL(baseUrl).hostname)
      ? firstProxy(param(call, 'proxy-servers'))
      : null;
  const { tag, os, arch, url, packageType, bootloc, components, distribution } = repository;
  return new Struct('Repo', {
    Tag: tag,
    OS: os,
    Arch: arch,
    URL: url,
    PackageType: packageType,
    RepoType: repoTypeOf(repository) ?? '',
    InstallSource: repository.installSource,
    SecuritySource: repository.securitySource,
    Distribution: distribution,
    Components: components,
    BootLoc: bootloc,
    JoinedComponents: fixed([], () => components.join(' ')),
    UrlFor: fixed(['string'], (_call, component) => urlFor(repository, component)),
    Install: fixed([], (call) =>
      installLines(repository, { name: OS.Name, version: OS.Version }, () => proxyOf(call)),
    ),
    Lines: fixed([], () => repositoryLines(repository)),
    R: fixed([], dot),
    Target: OS.Name,
  });
}

/** Returns the first entry of the param proxy-servers, which is a list of URLs. */
function firstProxy(servers: Value): string | null {
  if (!isList(servers) || servers.length === 0) return null;
  const [first] = servers;
  if (typeof first !== 'string' || /["\\\s\p{Cc}]/u.test(first))
    throw new CallError("the first entry of the param 'proxy-servers' is not a URL");
  return first === '' ? null : first;
}
