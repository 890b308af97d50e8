import { AMD64_NAMES, type BootEnv, type PackageRepository } from '#shared/contract/boot-env.ts';
import { installsSystem } from '#shared/contract/boot-objects.ts';
import type { BootPlanInput } from './boot-plan.ts';
import { encodeYaml } from './encode-yaml.ts';
import type { ParamReader, ParamValue } from './params.ts';
import {
  installLines,
  type InstallPlaces,
  installRepositories,
  machineRepositories,
  repositoryLines,
  repoTypeOf,
  urlFor,
} from './repositories.ts';
import { encodeJson } from './template/functions/encode-json.ts';
import { CallError } from './template/template-error.ts';
import {
  fixed,
  fromJson,
  GoFunction,
  isDict,
  isList,
  Struct,
  variadic,
  type Call,
  type Value,
} from './template/values.ts';

/** What the rendering of one file comes to know of its parameters. */
export interface ParamUse {
  isSecretBearing: boolean;
  /** Also of one that is lost. */
  hasSecret: boolean;
  readonly lostSecrets: Set<string>;
}

export interface RenderInput extends Pick<BootPlanInput, 'machine' | 'baseUrl' | 'mirrorUrl'> {
  readonly params: ParamReader;
  /** Customized. */
  readonly bootEnv: BootEnv;
  /** What the param package-repositories names. */
  readonly repositories: () => readonly PackageRepository[];
  /** The archive that it boots from; null for a repository. */
  readonly opened: Pick<NonNullable<InstallPlaces['archive']>, 'hasRelease'> | null;
}

const NO_TOKENS = 'a guest needs no token of an API: it reports at install/events';
const REFUSED: Readonly<Record<string, string>> = {
  ApiURL: NO_TOKENS,
  GenerateInfiniteToken: NO_TOKENS,
  GenerateProfileToken: NO_TOKENS,
  GenerateToken: NO_TOKENS,
};

/**
 * The dot of a boot environment's templates: dr-provision's names, each with what it means here.
 * @param use is told which parameters a file came to have
 */
export function createRenderData(input: RenderInput, use: ParamUse): Struct {
  const { baseUrl, bootEnv } = input;
  const members: Record<string, Value | GoFunction> = {
    Machine: machineData(input),
    Env: envData(input),
    ProvisionerURL: baseUrl,
    ProvisionerAddress: new URL(baseUrl).hostname,
    BootParams: fixed([], (call) => {
      const { BootParams } = bootEnv.OS.SupportedArchitectures.amd64;
      return call.renderText('BootParams', BootParams, data);
    }),
    CallTemplate: fixed(['string', 'any'], (call, name, dot) => call.renderTemplate(name, dot)),
    ParseURL: parseUrl,
    ParseUrl: parseUrl,
    ...paramFunctions(input, use, () => data),
    ...repositoryFunctions(input, () => data),
    ...Object.fromEntries(
      Object.entries(REFUSED).map(([name, reason]) => [
        name,
        variadic([], 'any', () => {
          throw new CallError(`.${name} is refused: ${reason}`);
        }),
      ]),
    ),
  };
  const data = new Struct('RenderData', members);
  return data;
}

/** Where a machine's own files are, below the file root. */
export function machinePath({ uuid }: { readonly uuid: string }): string {
  return `machines/${uuid}`;
}

/** What is loaded, as the machine sees it. */
function installUrlOf({ baseUrl, machine }: Pick<RenderInput, 'baseUrl' | 'machine'>): string {
  return `${baseUrl}/${machinePath(machine)}/boot`;
}

/**
 * The same by a protocol. TFTP, which nothing here serves, knows paths below the file root: those
 * of loaders that are left out begin so, and iPXE takes one for what is beside its script.
 */
function rootOf(protocol: string, input: Pick<RenderInput, 'baseUrl' | 'machine'>): string {
  if (protocol === 'http') return installUrlOf(input);
  if (protocol === 'tftp') return `${machinePath(input.machine)}/boot`;
  throw new CallError(`files are served by http, not by ${JSON.stringify(protocol)}`);
}

/** Scripts and kernels' lines are parted by spaces; what a URL has as it is stays as it is. */
function encodeForUrl(path: string): string {
  return path.toWellFormed().replace(/[^\w.+~@:=,/-]/gu, encodeURIComponent);
}

function machineData({ machine, baseUrl, bootEnv }: RenderInput): Struct {
  const { name, uuid, mac, address } = machine;
  return new Struct('Machine', {
    Name: name,
    ShortName: name.split('.')[0] ?? name,
    UUID: uuid,
    Uuid: uuid,
    Path: machinePath(machine),
    Url: `${baseUrl}/${machinePath(machine)}`,
    Address: address,
    HexAddress: address
      .split('.')
      .map((part) => Number(part).toString(16).padStart(2, '0').toUpperCase())
      .join(''),
    Arch: 'amd64',
    Context: '',
    OS: bootEnv.OS.Name,
    MacAddr: variadic([], 'string', (_call, _fixed, [form = 'raw']) => {
      if (form === 'raw' || form === 'ipxe' || form === 'grub') return mac;
      if (form === 'pxe' || form === 'pxelinux') return `01-${mac.replaceAll(':', '-')}`;
      throw new CallError(`no form of a MAC address: ${JSON.stringify(form)}`);
    }),
  });
}

function envData(input: RenderInput): Struct {
  const { bootEnv } = input;
  const arch = bootEnv.OS.SupportedArchitectures.amd64;
  const installUrl = installUrlOf(input);
  const pathFor = (protocol: string, path: string): string => {
    const root = rootOf(protocol, input);
    if (path === '') return root;
    const named = path.replace(/^\/+/, '');
    return `${root}/${protocol === 'http' ? encodeForUrl(named) : named}`;
  };
  // The pieces of d-i's and pxelinux's lines are parted by commas.
  const joinInitrds = (protocol: string): string =>
    arch.Initrds.map((path) => pathFor(protocol, path)).join(',');
  const onlyAmd64 = (name: string): void => {
    if (!AMD64_NAMES.includes(name))
      throw new CallError(`machines are amd64, not ${JSON.stringify(name)}`);
  };
  return new Struct('BootEnv', {
    Name: bootEnv.Name,
    Description: bootEnv.Description,
    OS: osData(bootEnv),
    Kernel: arch.Kernel,
    Initrds: arch.Initrds,
    BootParams: arch.BootParams,
    InstallUrl: installUrl,
    PathFor: fixed(['string', 'string'], (_call, protocol, path) => pathFor(protocol, path)),
    PathForArch: fixed(['string', 'string', 'string'], (_call, protocol, path, name) => {
      onlyAmd64(name);
      return pathFor(protocol, path);
    }),
    JoinInitrds: fixed(['string'], (_call, protocol) => joinInitrds(protocol)),
    JoinInitrdsFor: fixed(['string', 'string'], (_call, protocol, name) => {
      onlyAmd64(name);
      return joinInitrds(protocol);
    }),
    ...Object.fromEntries(
      (['Kernel', 'Initrds', 'BootParams'] as const).map((field) => [
        `${field}For`,
        fixed(['string'], (_call, name) => {
          onlyAmd64(name);
          return arch[field];
        }),
      ]),
    ),
  });
}

function osData({ OS }: BootEnv): Struct {
  const [namedFamily = '', namedVersion = ''] = OS.Name.split('-');
  const family = OS.Family || namedFamily;
  const version = OS.Version || namedVersion;
  const kinds: Readonly<Record<string, string>> = {
    centos: 'rhel',
    redhat: 'rhel',
    fedora: 'rhel',
    scientificlinux: 'rhel',
    debian: 'debian',
    ubuntu: 'debian',
  };
  return new Struct('OsInfo', {
    Name: OS.Name,
    Family: OS.Family,
    Codename: OS.Codename,
    Version: OS.Version,
    FamilyName: family,
    FamilyType: Object.hasOwn(kinds, family) ? (kinds[family] ?? family) : family,
    FamilyVersion: version,
    VersionEq: fixed(['string'], (_call, other) => isVersion(version, other)),
    SupportedArchitectures: new Map([['amd64', fromJson(OS.SupportedArchitectures.amd64)]]),
  });
}

/** Equal as far as the other one goes: 7.3 is 7, and is not 7.3.11. */
function isVersion(version: string, other: string): boolean {
  const [own, wanted] = [version.split('.'), other.split('.')];
  const same = (left: string, right: string): boolean =>
    /^\d{1,15}$/.test(left) && /^\d{1,15}$/.test(right)
      ? Number(left) === Number(right)
      : left === right;
  return wanted.length <= own.length && wanted.every((part, index) => same(own[index] ?? '', part));
}

function paramFunctions(
  { params }: RenderInput,
  use: ParamUse,
  dot: () => Value,
): Readonly<Record<string, GoFunction>> {
  const take = (call: Call, name: string, found: ParamValue | undefined): Value => {
    if (!found) throw new CallError(`there is no param '${name}'`);
    if (found.kind === 'lost') {
      use.isSecretBearing = true;
      use.hasSecret = true;
      use.lostSecrets.add(name);
      return null;
    }
    if (found.isHidden) use.isSecretBearing = true;
    if (found.isSecret) use.hasSecret = true;
    call.spend(sizeOf(found.value));
    return fromJson(found.value);
  };
  const param = (call: Call, name: string): Value =>
    take(call, name, params.read(name, call.spend));
  return {
    Param: fixed(['string'], param),
    ParamExists: fixed(['string'], (_call, name) => params.has(name)),
    ParamCompose: fixed(['string'], (call, name) =>
      take(call, name, params.compose(name, call.spend)),
    ),
    ParamExpand: fixed(['string'], (call, name) => expand(call, name, param(call, name), dot())),
    ParamAsJSON: fixed(['string'], (call, name) =>
      encodeJson(param(call, name), call.spend, { escapesHtml: true }),
    ),
    ParamAsYAML: fixed(['string'], (call, name) => encodeYaml(param(call, name), call.spend)),
  };
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' ? value.length >> 5 : JSON.stringify(value).length >> 3;
}

/** Texts in a value as templates, also those in its lists and maps. */
function expand(call: Call, name: string, value: Value, dot: Value): Value {
  if (typeof value === 'string') return call.renderText(`param ${name}`, value, dot);
  if (isList(value)) return value.map((part) => expand(call, name, part, dot));
  if (!isDict(value)) return value;
  return new Map([...value].map(([key, part]) => [key, expand(call, name, part, dot)]));
}

const parseUrl = fixed(['string', 'string'], (_call, segment, text) => {
  if (!URL.canParse(text)) throw new CallError(`this is no URL: ${JSON.stringify(text)}`);
  const url = new URL(text);
  if (segment === 'scheme') return url.protocol.slice(0, -1);
  if (segment === 'host') return url.host;
  if (segment === 'path') return url.pathname;
  throw new CallError(`a URL has scheme, host and path, not ${JSON.stringify(segment)}`);
});

function repositoryFunctions(
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
    // Mirrors are open to installations alone.
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
