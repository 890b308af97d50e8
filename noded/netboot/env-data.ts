import { AMD64_NAMES, type BootEnv } from '#shared/contract/boot-env.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { installUrlOf, machinePath, type RenderInput } from './render-input.ts';
import { CallError } from './template/template-error.ts';
import {
  fixed,
  fromJson,
  isDict,
  Struct,
  type Call,
  type Dict,
  type GoFunction,
} from './template/values.ts';

export interface BootParamsFunctions {
  readonly BootParams: GoFunction;
  readonly BootParamsFor: GoFunction;
}

/** @param render renders the BootParams as a template, without `initrd=` words */
export function bootParamsFunctions(
  bootEnv: BootEnv,
  filePath: string,
  render: (call: Call) => string,
): BootParamsFunctions {
  const { Initrds } = bootEnv.OS.SupportedArchitectures.amd64;
  const make = (call: Call): string => [...initrdWords(filePath, Initrds), render(call)].join(' ');
  return {
    BootParams: fixed([], make),
    BootParamsFor: fixed(['string'], (call, name) => {
      refuseOtherArch(name);
      return make(call);
    }),
  };
}

/**
 * Returns the `initrd=` words of an iPXE script. iPXE under UEFI shows each image to the kernel as
 * a file with the base name of its URL, and the kernel's EFI stub opens the files that its command
 * line names. Without the words the kernel starts without an initrd and panics. A BIOS kernel
 * ignores them. dr-provision writes the first name only; the stub needs each.
 */
function initrdWords(filePath: string, initrds: readonly string[]): readonly string[] {
  if (!filePath.endsWith('.ipxe')) return [];
  const names = initrds.map((path) => encodeForUrl(path.slice(path.lastIndexOf('/') + 1)));
  return [...new Set(names)].map((name) => `initrd=${name}`);
}

function refuseOtherArch(name: string): void {
  if (!AMD64_NAMES.includes(name))
    throw new CallError(`instances are amd64, not ${JSON.stringify(name)}`);
}

/**
 * Returns the root of the boot files by a protocol. TFTP is not served; its paths are below the
 * file root. Paths of loaders that are left out begin with it, and iPXE resolves it relative to the
 * script.
 */
function rootOf(protocol: string, input: Pick<RenderInput, 'baseUrl' | 'machine'>): string {
  if (protocol === 'http') return installUrlOf(input);
  if (protocol === 'tftp') return `${machinePath(input.machine)}/boot`;
  throw new CallError(`files are served by http, not by ${JSON.stringify(protocol)}`);
}

/** Encodes characters that would split words of a script or of a kernel command line. */
function encodeForUrl(path: string): string {
  return path.toWellFormed().replace(/[^\w.+~@:=,/-]/gu, encodeURIComponent);
}

/** Returns `.Env`: the BootEnv, with paths and URLs of its files. */
export function envData(input: RenderInput, bootParams: BootParamsFunctions): Struct {
  const { bootEnv } = input;
  const arch = bootEnv.OS.SupportedArchitectures.amd64;
  const pathFor = (protocol: string, path: string): string => {
    const root = rootOf(protocol, input);
    if (path === '') return root;
    const named = path.replace(/^\/+/, '');
    return `${root}/${protocol === 'http' ? encodeForUrl(named) : named}`;
  };
  // debian-installer and pxelinux separate the parts of their lines by commas.
  const joinInitrds = (protocol: string): string =>
    arch.Initrds.map((path) => pathFor(protocol, path)).join(',');
  const members = {
    Name: bootEnv.Name,
    Description: bootEnv.Description,
    OS: osData(bootEnv),
    Kernel: arch.Kernel,
    Initrds: arch.Initrds,
    InstallUrl: installUrlOf(input),
    ...bootParams,
    PathFor: fixed(['string', 'string'], (_call, protocol, path) => pathFor(protocol, path)),
    PathForArch: fixed(['string', 'string', 'string'], (_call, protocol, path, name) => {
      refuseOtherArch(name);
      return pathFor(protocol, path);
    }),
    JoinInitrds: fixed(['string'], (_call, protocol) => joinInitrds(protocol)),
    JoinInitrdsFor: fixed(['string', 'string'], (_call, protocol, name) => {
      refuseOtherArch(name);
      return joinInitrds(protocol);
    }),
    KernelFor: fixed(['string'], (_call, name) => {
      refuseOtherArch(name);
      return arch.Kernel;
    }),
    InitrdsFor: fixed(['string'], (_call, name) => {
      refuseOtherArch(name);
      return arch.Initrds;
    }),
  };
  return new Struct('BootEnv', members, (spend) => asDict(bootEnv, spend));
}

function asDict(part: object, spend: (steps: number) => void): Dict {
  spend(JSON.stringify(part).length >> 3);
  const dict = fromJson(part);
  if (!isDict(dict)) throw new Error('a JSON object became something else than a map');
  return dict;
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
  const members = {
    Name: OS.Name,
    Family: OS.Family,
    Codename: OS.Codename,
    Version: OS.Version,
    FamilyName: family,
    FamilyType: ownValue(kinds, family) ?? family,
    FamilyVersion: version,
    VersionEq: fixed(['string'], (_call, other) => isVersion(version, other)),
    SupportedArchitectures: new Map([['amd64', fromJson(OS.SupportedArchitectures.amd64)]]),
  };
  return new Struct('OsInfo', members, (spend) => asDict(OS, spend));
}

/** Compares the parts that `other` has: 7.3 equals 7, and does not equal 7.3.11. */
function isVersion(version: string, other: string): boolean {
  const [own, wanted] = [version.split('.'), other.split('.')];
  const same = (left: string, right: string): boolean =>
    /^\d{1,15}$/.test(left) && /^\d{1,15}$/.test(right)
      ? Number(left) === Number(right)
      : left === right;
  return wanted.length <= own.length && wanted.every((part, index) => same(own[index] ?? '', part));
}
