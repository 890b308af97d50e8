import type { PackageRepository } from '#shared/contract/boot-env.ts';
import { installsSystem } from '#shared/contract/boot-objects.ts';
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
import {
  fixed,
  Struct,
  variadic,
  type Call,
  type GoFunction,
  type Value,
} from './template/values.ts';

/** `.Repos`, `.MachineRepos` and `.InstallRepos`. @param dot the value of `.R` of each */
export function repositoryFunctions(
  input: RenderInput,
  dot: () => Value,
): Readonly<Record<string, GoFunction>> {
  const { bootEnv, repositories } = input;
  const { Name } = bootEnv.OS;
  const shown = (call: Call, list: readonly PackageRepository[]): readonly Value[] => {
    call.spend(repositories().length + list.length * 10);
    return list.map((repository) => repositoryData(repository, dot));
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

function repositoryData(repository: PackageRepository, dot: () => Value): Struct {
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
    Install: fixed([], () => installLines(repository)),
    Lines: fixed([], () => repositoryLines(repository)),
    R: fixed([], dot),
  });
}
