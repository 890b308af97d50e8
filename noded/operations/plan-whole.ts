import { hasVolumes } from '#shared/contract/disk-template.ts';
import { isDeepStrictEqual } from 'node:util';
import { FILE_PARAMETERS } from '#shared/contract/parameter-keys.ts';
import { imageReference } from '#shared/contract/image-catalogue.ts';
import { MAX_SOURCE_LENGTH } from '#shared/contract/plain-settings.ts';
import { instanceCreate, type OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { WholeExport } from '../instances/backup/export-record.ts';
import type { LoadedExport } from '../instances/backup/export-store.ts';
import { markRemote } from '../content/downloads/transfer/remote-hosts.ts';
import { parseSource } from '../content/downloads/transfer/source-url.ts';
import { planNic } from '../instances/record/change-parts.ts';
import { mergeSettings } from '../instances/record/merge-changes.ts';
import { newInstanceId, NO_PAST, type RecordContext } from '../instances/record/plan-record.ts';
import { refuseUnusableMacs } from '../instances/record/refuse-macs.ts';
import type { NewInstance } from '../records/instance-repository.ts';

type Create = OpcodeOf<'INSTANCE_CREATE'>;

const SETTABLE: ReadonlySet<string> = new Set<keyof Create>([
  ...(['opcode', 'name', 'importFrom', 'node', 'install', 'start', 'onFailure'] as const),
  ...(['nics', 'beparams', 'hvparams', 'tags', 'autostart', 'installTimeoutS'] as const),
]);

/**
 * Plans the record of an instance whose disks are in an export, like a copy's. NICs keep their MACs
 * if the name is the same. An export from elsewhere is untrusted: its paths to files of this host
 * are removed, and its URLs may not reach this host or its networks. Pure except for the values
 * that the context draws.
 * @throws AppError VALIDATION, EXPORT_INVALID
 */
export function planWhole(
  opcode: Create,
  { record, dumps, path, isOwn }: Omit<LoadedExport, 'pin' | 'losses'>,
  whole: WholeExport,
  context: RecordContext,
): NewInstance {
  refuseOtherSettings(opcode);
  const { instance } = whole;
  const kept = isOwn ? instance : asForeign(instance);
  if (dumps.length !== instance.disks.length || record.disks.length !== instance.disks.length) {
    throw new AppError('EXPORT_INVALID', `the export in ${path} is incomplete: disks are missing`, {
      details: { path },
    });
  }
  const isSame = opcode.name === record.name;
  const nics =
    opcode.nics.length > 0
      ? opcode.nics.map((nic) => planNic(nic, context))
      : instance.nics.map((nic) => ({
          ...nic,
          ...{ uuid: context.newUuid(), mac: isSame ? nic.mac : context.newMac() },
        }));
  refuseUnusableMacs(nics.map(({ mac }) => mac));
  return {
    ...kept,
    ...{ schema: 1, name: opcode.name, uuid: context.newUuid(), primaryNode: context.nodeName },
    instanceId: newInstanceId(context.newUuid, instance.dialects),
    channelNicUuid: context.newUuid(),
    nics,
    diskTemplate: hasVolumes(instance.diskTemplate) ? 'file' : instance.diskTemplate,
    disks: instance.disks.map(({ name, sizeBytes, port }) => ({
      ...{ uuid: context.newUuid(), name, sizeBytes },
      ...(port !== undefined && { port }),
    })),
    tags: opcode.tags.length > 0 ? opcode.tags : instance.tags,
    beparams: mergeSettings(instance.beparams, opcode.beparams),
    hvparams: mergeSettings(kept.hvparams, opcode.hvparams),
    autostart: mergeSettings(instance.autostart, opcode.autostart ?? {}),
    installTimeoutS: opcode.installTimeoutS ?? instance.installTimeoutS,
    bootEnv: null,
    ...NO_PAST,
  };
}

/** Refuses other settings: the content of the disks was made with those of the export. */
function refuseOtherSettings(opcode: Create): void {
  const { name } = opcode;
  const plain: Readonly<Record<string, unknown>> = instanceCreate.parse({
    opcode: 'INSTANCE_CREATE',
    name,
  });
  const isOther = Object.entries(opcode).some(
    ([key, value]) =>
      !SETTABLE.has(key) && value !== undefined && !isDeepStrictEqual(value, ownValue(plain, key)),
  );
  if (!isOther) return;
  throw new AppError(
    'VALIDATION',
    'the export holds whole disks and all settings: only --net, -B, -H, --tags, --autostart and --install-timeout can be given',
    {
      hint: `Leave the other options out. Change them after the import: gnt-instance modify ${name}`,
    },
  );
}

type Instance = WholeExport['instance'];

/**
 * Limits a foreign record to the reach of a remote user: public URLs and names of the catalogue.
 */
function asForeign(instance: Instance): Instance {
  const osImage = imageReference.safeParse(instance.osImage).data ?? remoteUrl(instance.osImage);
  const personalizationPackage = remoteUrl(instance.personalizationPackage);
  return {
    ...instance,
    hvparams: withoutFiles(instance.hvparams),
    installParameters: withoutFiles(instance.installParameters),
    ...(osImage === null ? { osImage, osImageChecksum: null, osImageFormat: null } : { osImage }),
    ...(personalizationPackage === null
      ? { personalizationPackage, personalizationChecksum: null, packageNeedsPassword: false }
      : { personalizationPackage }),
  };
}

function withoutFiles(parameters: Instance['hvparams']): Instance['hvparams'] {
  const left = { ...parameters };
  const url = remoteUrl(left.cdrom_image_path ?? null);
  for (const name of FILE_PARAMETERS) delete left[name];
  return url === null ? left : { ...left, cdrom_image_path: url };
}

/** Returns the URL, marked as a remote one; null for a path, which is a file of this host. */
function remoteUrl(text: string | null): string | null {
  if (text === null || parseSource(text)?.kind !== 'url') return null;
  const marked = markRemote(text);
  return marked.length > MAX_SOURCE_LENGTH ? null : marked;
}
