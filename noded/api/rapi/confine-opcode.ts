import { type BootEnv, MAX_ISO_URL_LENGTH } from '#shared/contract/boot-env.ts';
import { FILE_PARAMETERS } from '#shared/contract/parameter-keys.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { MAX_SOURCE_LENGTH } from '#shared/contract/plain-settings.ts';
import { redactSource } from '#shared/contract/redact-source.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { confinePath } from '../../host/open-host-file.ts';
import { remoteRefusalOf } from '../../content/downloads/transfer/ssrf-guard.ts';
import { markRemote } from '../../content/downloads/transfer/remote-hosts.ts';
import { parseSource } from '../../content/downloads/transfer/source-url.ts';
import { notAllowed } from '../../operations/host-paths.ts';

/** `source` is the origin of a boot environment's archive. */
const SOURCE_FIELDS = ['osImage', 'personalizationPackage', 'source'] as const;

/** Local resources that the operator allows the remote API to name, besides the internet. */
export interface RemoteReach {
  readonly folders: readonly string[];
  readonly hosts: readonly string[];
}

/**
 * Returns the operation with every file confined to an allowed folder, and every URL marked as a
 * remote user's. The job, later jobs and other nodes then keep these bounds. Pure.
 * @throws AppError PATH_NOT_ALLOWED, NOT_ALLOWED
 */
export function confineOpcode<Op extends Opcode>(opcode: Op, reach: RemoteReach): Op {
  const changed: Record<string, unknown> = { ...opcode };
  for (const key of SOURCE_FIELDS) {
    const source = changed[key];
    if (typeof source === 'string') changed[key] = confineSource(source, reach);
  }
  for (const key of ['hvparams', 'installParameters'] as const) {
    const parameters = changed[key];
    if (typeof parameters !== 'object' || parameters === null) continue;
    const given: Record<string, unknown> = { ...parameters };
    for (const name of FILE_PARAMETERS) {
      const source = given[name];
      if (typeof source !== 'string') continue;
      // A kernel is always a file of the node, even if the text looks like a URL.
      const isFile = name !== 'cdrom_image_path' || parseSource(source)?.kind !== 'url';
      given[name] = isFile ? confineFile(source, reach) : confineSource(source, reach);
    }
    changed[key] = given;
  }
  if (opcode.opcode === 'BOOTENV_SET')
    changed['bootEnvs'] = opcode.bootEnvs.map((bootEnv) => confineArchive(bootEnv, reach));
  // Only strings were replaced, by strings.
  return changed as Op;
}

/**
 * Confines a path or URL. A catalogue's image name needs no bounds, since the operator manages the
 * catalogue.
 */
function confineSource(text: string, reach: RemoteReach): string {
  const source = parseSource(text);
  if (source?.kind === 'path') return confineFile(text, reach);
  return source === undefined ? text : confineUrl(text, source.url, reach);
}

/** Confines the URL of a boot environment's archive, which an operator may fetch later. */
function confineArchive(bootEnv: BootEnv, reach: RemoteReach): BootEnv {
  const { amd64 } = bootEnv.OS.SupportedArchitectures;
  const source = parseSource(amd64.IsoUrl);
  if (source?.kind !== 'url') return bootEnv;
  const IsoUrl = confineUrl(amd64.IsoUrl, source.url, reach, MAX_ISO_URL_LENGTH);
  const SupportedArchitectures = { amd64: { ...amd64, IsoUrl } };
  return { ...bootEnv, OS: { ...bootEnv.OS, SupportedArchitectures } };
}

function confineFile(path: string, { folders }: RemoteReach): string {
  const confined = confinePath(path, folders);
  if (confined === undefined) throw notAllowed(path.slice(0, 500));
  return confined;
}

function confineUrl(
  text: string,
  url: URL,
  { hosts }: RemoteReach,
  maxLength = MAX_SOURCE_LENGTH,
): string {
  const marked = markRemote(text);
  const isTooLong = marked.length > maxLength;
  const refusal = isTooLong ? 'the name is too long' : remoteRefusalOf(url, hosts);
  if (refusal === undefined) return marked;
  throw new AppError('NOT_ALLOWED', `${redactSource(text).slice(0, 500)} is refused: ${refusal}`, {
    hint: 'Allow hosts and networks: gnt-cluster modify --remote-hosts HOST,…',
  });
}
