import { CUSTOMIZE_PARAM } from '#shared/contract/boot-env.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

type Dependencies = Pick<OperationDependencies, 'archives' | 'clusters' | 'instances'>;

/** Removes an archive. Running guests keep it until the last of them ends. */
export function destroyIsoHandler(
  dependencies: Dependencies,
): JobHandler<OpcodeOf<'BOOTENV_DESTROY_ISO'>> {
  const { archives } = dependencies;
  return {
    // The second lock covers the content of BootEnvs: no BootEnv can start to name the archive
    // meanwhile.
    prepare: async ({ isoFile }) => {
      await requireArchive(isoFile, dependencies);
      await refuseUsed(isoFile, dependencies);
      return async ({ report }) => {
        const isGone = await archives.remove(isoFile);
        if (!isGone)
          report.log(`its content stays: another name refers to it, or an instance boots from it`);
        return { isoFile };
      };
    },
  };
}

/** @throws AppError NOT_FOUND with the nearest name */
async function requireArchive(isoFile: string, { archives }: Dependencies): Promise<void> {
  if (archives.contentOf(isoFile) !== undefined) return;
  const near = suggest(
    isoFile,
    (await archives.list()).map((archive) => archive.isoFile),
  );
  throw new AppError('NOT_FOUND', `this node has no open archive '${isoFile}'`, {
    details: { isoFile },
    hint: near === null ? 'List the open archives: gnt-bootenv list-isos' : `Did you mean ${near}?`,
  });
}

/** @throws AppError CONFLICT */
async function refuseUsed(isoFile: string, dependencies: Dependencies): Promise<void> {
  const users = await usersOf(isoFile, dependencies);
  if (users.length === 0) return;
  throw new AppError('CONFLICT', `the archive '${isoFile}' is used by ${users.join(', ')}`, {
    details: { isoFile, users },
    hint: 'Remove the boot environment (gnt-bootenv remove NAME), or replace the archive (gnt-bootenv add-iso NAME FILE).',
  });
}

/**
 * Lists the users of an archive. A document with its name counts as a user: only rendering shows
 * whether the document means it.
 */
async function usersOf(
  isoFile: string,
  { clusters, instances }: Dependencies,
): Promise<readonly string[]> {
  const isNaming = ({ [CUSTOMIZE_PARAM]: text }: Readonly<Record<string, string>>): boolean =>
    text !== undefined && hasText(parseJson(text), isoFile);
  const [bootEnvs, params, profiles, systems, all] = await Promise.all([
    clusters.listBootEnvs(),
    clusters.listParams(),
    clusters.listProfiles(),
    clusters.listOs(),
    instances.list(),
  ]);
  return [
    ...bootEnvs
      .filter(({ OS }) => OS.SupportedArchitectures.amd64.IsoFile === isoFile)
      .map(({ Name }) => `boot environment ${Name}`),
    ...params
      .filter(({ Name, Schema }) => Name === CUSTOMIZE_PARAM && hasText(Schema, isoFile))
      .map(({ Name }) => `param ${Name}`),
    ...profiles.filter((each) => isNaming(each.osParameters)).map(({ name }) => `profile ${name}`),
    ...systems.filter((each) => isNaming(each.osParameters)).map(({ name }) => `OS ${name}`),
    ...all.filter((each) => isNaming(each.osParameters)).map(({ name }) => `instance ${name}`),
  ];
}

/** Returns whether a document contains the text at any depth. */
function hasText(document: unknown, text: string): boolean {
  const left = [document];
  while (left.length > 0) {
    const value = left.pop();
    if (value === text) return true;
    if (typeof value === 'object' && value !== null)
      for (const each of Object.values(value)) left.push(each);
  }
  return false;
}
