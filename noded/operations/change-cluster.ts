import type { ClusterRecord, OsSettings } from '#shared/contract/api.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { MAX_MIRRORS } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { mergeChanges, mergeTags } from '../instances/merge-changes.ts';
import { refuseDuplicateParameters } from '../instances/plan-record.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

export function modifyOsHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'OS_SET_PARAMS'>> {
  return {
    locks: (opcode) => [`os/${opcode.name}`],
    prepare: async (opcode) => {
      const names = [
        ...Object.keys(opcode.osParameters),
        ...Object.keys(opcode.osParametersPrivate),
      ];
      const hasFlag = [opcode.trusted, opcode.hidden, opcode.blacklisted].some(
        (flag) => flag !== undefined,
      );
      if (names.length === 0 && !hasFlag) {
        throw new AppError('USAGE', 'nothing to modify was given', {
          hint: 'give --trusted, --hidden, --blacklisted, -O or --os-parameters-private',
        });
      }
      refuseDuplicateParameters(opcode);
      return async () => {
        await dependencies.clusters.updateOs(opcode.name, (settings) =>
          applyOsChanges(settings, opcode),
        );
        return { name: opcode.name };
      };
    },
  };
}

/** Pure. A parameter that is given in one visibility leaves the other. */
export function applyOsChanges(
  settings: OsSettings,
  opcode: OpcodeOf<'OS_SET_PARAMS'>,
): OsSettings {
  return {
    ...settings,
    trusted: opcode.trusted ?? settings.trusted,
    hidden: opcode.hidden ?? settings.hidden,
    blacklisted: opcode.blacklisted ?? settings.blacklisted,
    osParameters: mergeChanges(
      mergeChanges(settings.osParameters, removalsOf(opcode.osParametersPrivate)),
      opcode.osParameters,
    ),
    osParametersPrivate: mergeChanges(
      mergeChanges(settings.osParametersPrivate, removalsOf(opcode.osParameters)),
      opcode.osParametersPrivate,
    ),
  };
}

function removalsOf(changes: Record<string, string | null>): Record<string, null> {
  const given = Object.entries(changes).filter(([, value]) => value !== null);
  return Object.fromEntries(given.map(([name]) => [name, null]));
}

/** As many as a view holds. */
const MAX_SERVICES = 32;
const HTTP_PORT = 80;

function refuseUnusableServices(services: ClusterRecord['exposeServices']): void {
  if (Object.keys(services).length > MAX_SERVICES) {
    throw new AppError('VALIDATION', `more than ${MAX_SERVICES} exposed services`, {
      hint: 'remove those that are not needed any more',
    });
  }
  const names = new Map([[HTTP_PORT, 'the metadata service']]);
  for (const [name, { port }] of Object.entries(services)) {
    const other = names.get(port);
    if (other !== undefined) {
      throw new AppError('VALIDATION', `service '${name}': port ${port} is taken by ${other}`, {
        hint: 'choose another port',
      });
    }
    names.set(port, `service '${name}'`);
  }
}

function refuseTooManyMirrors(mirrors: Readonly<Record<string, string>>): void {
  if (Object.keys(mirrors).length <= MAX_MIRRORS) return;
  throw new AppError('VALIDATION', `more than ${MAX_MIRRORS} package mirrors`, {
    hint: 'remove those that are not needed any more',
  });
}

export function modifyClusterHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'CLUSTER_SET_PARAMS'>> {
  return {
    locks: () => ['cluster'],
    prepare: async (opcode) => {
      const { exposeServices, packageMirrors = {} } = await dependencies.clusters.load();
      refuseUnusableServices(mergeChanges(exposeServices, opcode.exposeServices));
      refuseTooManyMirrors(mergeChanges(packageMirrors, opcode.packageMirrors));
      return async () => {
        await dependencies.clusters.update((cluster) => ({
          ...cluster,
          installTimeoutS: opcode.installTimeoutS ?? cluster.installTimeoutS,
          hostScripts: opcode.hostScripts ?? cluster.hostScripts,
          ...chosen({
            maxImageBytes: opcode.maxImageBytes ?? cluster.maxImageBytes,
            downloadTimeoutS: opcode.downloadTimeoutS ?? cluster.downloadTimeoutS,
            minDownloadRate: opcode.minDownloadRate ?? cluster.minDownloadRate,
          }),
          ...(opcode.remoteFolders && { remoteFolders: opcode.remoteFolders }),
          exposeServices: mergeChanges(cluster.exposeServices, opcode.exposeServices),
          packageMirrors: mergeChanges(cluster.packageMirrors ?? {}, opcode.packageMirrors),
          tags: mergeTags(cluster.tags ?? [], opcode),
        }));
        if (Object.keys(opcode.exposeServices).length > 0) await dependencies.services.publish();
        return {};
      };
    },
  };
}

/** What was never set keeps following the default of the programs. */
function chosen<Key extends string>(
  values: Readonly<Record<Key, number | undefined>>,
): Partial<Record<Key, number>> {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  // The same keys and values, but for those that are undefined.
  return Object.fromEntries(given) as Partial<Record<Key, number>>;
}
