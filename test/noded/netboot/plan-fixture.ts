import assert from 'node:assert/strict';
import { bootEnvDocument, foldBootEnv, type BootEnv } from '#shared/contract/boot-env.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { BootParameter, BootPlan, BootPlanInput } from '../../../noded/netboot/boot-plan.ts';
import { planBootEnv } from '../../../noded/netboot/plan-boot-env.ts';

export const uuid = '3f0c8c6e-0000-4000-8000-000000000001';
export const mac = 'aa:00:00:12:34:56';
export const address = '169.254.10.20';
export const baseUrl = 'http://169.254.169.254/ganeti/latest/boot';
export const ipxe = {
  Name: 'ipxe',
  Path: '{{.Machine.MacAddr "ipxe"}}.ipxe',
  ID: 'default-ipxe.tmpl',
};

export const envOf = (parts: object): BootEnv =>
  foldBootEnv(
    bootEnvDocument.parse({ Name: 'test', OS: { Name: 'debian-12' }, Templates: [ipxe], ...parts }),
  ).bootEnv;
export const publicly = (values: Readonly<Record<string, string>>): Map<string, BootParameter> =>
  new Map(Object.entries(values).map(([name, value]) => [name, { visibility: 'public', value }]));
export function plan(bootEnv: object, parts: Partial<BootPlanInput> = {}): BootPlan {
  const parameters = parts.parameters ?? new Map<string, BootParameter>();
  return planBootEnv({
    machine: { name: 'web1.example.com', uuid, mac, address },
    bootEnv: envOf(bootEnv),
    templates: new Map(),
    schemas: new Map(),
    parameters,
    layers: [{ values: parameters }],
    archive: () => null,
    isAllowed: () => true,
    mirrorUrl: () => null,
    packageMirrors: {},
    baseUrl,
    ...parts,
  });
}
export const withText = (Contents: string): object => ({
  Templates: [ipxe, { Name: 'x', Path: '{{.Machine.Path}}/x', Contents }],
});
/** Renders a template. */
export function rendered(
  text: string,
  parts: Partial<BootPlanInput> = {},
  bootEnv: object = {},
): unknown {
  const { files } = plan({ ...bootEnv, ...withText(text) }, parts);
  return files.find(({ path }) => path === `machines/${uuid}/x`)?.contents;
}
export function refusal(code: ErrorCode, run: () => unknown): AppError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`${code} was expected, and nothing was thrown`);
}

export const bootable = {
  OS: {
    Name: 'debian-12',
    Codename: 'bookworm',
    SupportedArchitectures: {
      amd64: {
        IsoFile: 'd.tar.gz',
        Kernel: 'd/linux',
        Initrds: ['d/initrd.gz', 'more.cpio'],
        BootParams: 'auto url={{.Machine.Url}}/seed {{.Param "opts"}}',
      },
    },
  },
};
export const opts = publicly({ opts: 'quiet' });
export const sha256 = 'a'.repeat(64);
export const opened = (...paths: readonly string[]): BootPlanInput['archive'] => {
  return (isoFile) =>
    isoFile === 'd.tar.gz' ? { sha256, has: (path) => paths.includes(path) } : null;
};

export const repository = {
  tag: 'r',
  os: ['debian-12'],
  arch: 'amd64',
  url: 'http://deb.example/debian',
  bootloc: 'http://deb.example/debian/netboot/',
  installSource: true,
  distribution: 'bookworm',
  components: ['main', 'contrib'],
};
export const withRepositories = (...list: readonly object[]): Map<string, BootParameter> =>
  new Map([...opts, ...publicly({ 'package-repositories': JSON.stringify(list) })]);
