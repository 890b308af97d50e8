import {
  AMD64_NAMES,
  EFI_LOADER,
  type BootEnv,
  type BootEnvOverride,
} from '#shared/contract/boot-env.ts';
import { ownValue } from '#shared/json/own-value.ts';

/**
 * Applies the param bootenv-customize to a BootEnv. Given fields replace the BootEnv's, templates
 * by their Name. Pure.
 */
export function customizeBootEnv(bootEnv: BootEnv, override: BootEnvOverride | undefined): BootEnv {
  if (override === undefined) return bootEnv;
  const { OS, Loaders, Templates } = override;
  const loader = Loaders[EFI_LOADER] ?? bootEnv.Loaders[EFI_LOADER];
  const replaced = new Map(
    [...bootEnv.Templates, ...Templates].map((template) => [template.Name, template]),
  );
  return {
    ...bootEnv,
    OS: {
      ...bootEnv.OS,
      Name: OS.Name || bootEnv.OS.Name,
      Family: OS.Family || bootEnv.OS.Family,
      Codename: OS.Codename || bootEnv.OS.Codename,
      Version: OS.Version || bootEnv.OS.Version,
      SupportedArchitectures: { amd64: customizeArch(bootEnv, OS) },
    },
    Loaders: loader === undefined ? {} : { [EFI_LOADER]: loader },
    Templates: [...replaced.values()],
  };
}

type Arch = BootEnv['OS']['SupportedArchitectures']['amd64'];

function customizeArch({ OS }: BootEnv, override: BootEnvOverride['OS']): Arch {
  const own = OS.SupportedArchitectures.amd64;
  const name = AMD64_NAMES.find((each) => Object.hasOwn(override.SupportedArchitectures, each));
  const arch = name === undefined ? undefined : ownValue(override.SupportedArchitectures, name);
  if (!arch) return own;
  // Another file has another digest and URL. An unknown one stays empty.
  const iso =
    arch.IsoFile === ''
      ? { IsoFile: own.IsoFile, Sha256: own.Sha256, IsoUrl: own.IsoUrl }
      : { IsoFile: arch.IsoFile, Sha256: arch.Sha256 || arch.IsoSha256, IsoUrl: arch.IsoUrl };
  return {
    ...iso,
    Kernel: arch.Kernel || own.Kernel,
    Initrds: arch.Initrds.length > 0 ? arch.Initrds : own.Initrds,
    BootParams: arch.BootParams || own.BootParams,
  };
}
