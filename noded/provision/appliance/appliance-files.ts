import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { machine, totalmem } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import { orAborted } from '#shared/abort/abortable.ts';
import {
  applianceManifest,
  BUILT_APPLIANCE,
  buildProgress,
  type ApplianceManifest,
} from '#shared/contract/appliance-manifest.ts';
import { describeUnfit } from '#shared/contract/unfit-appliance.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { isErrorCode } from '#shared/errors/codes.ts';
import { hashFile } from '#shared/files/hash-file.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { LaunchProgram } from '#shared/process/launch.ts';
import { runInGroup } from '#shared/process/run-in-group.ts';
import type { JobContext } from '../../jobs/job-handler.ts';

export interface Appliance {
  readonly manifest: ApplianceManifest;
  /** `sha256:HEX` of the manifest's file, which has the checksums of all other files. */
  readonly digest: string;
  readonly kernelPath: string;
  readonly initrdPath: string;
  readonly rootPath: string;
}

export interface ApplianceFilesOptions {
  readonly dir: string;
  /** Folder of the imported appliances. */
  readonly importedDir: string;
  /** Command line of `gnt-appliance`, without `build --progress-json`. */
  readonly builder: { readonly command: string; readonly args: readonly string[] };
  readonly launch: LaunchProgram;
  /** GNT_ROOT, HOME and the cache directory. */
  readonly builderEnvironment: Readonly<Record<string, string>>;
}

/** Memory of an appliance that is not built yet. */
const USUAL_MEMORY_MIB = 512;
/** Folder of an appliance, and the hint when it is missing or damaged. */
interface Place {
  readonly dir: string;
  readonly hint: string;
  /** Name of the imported appliance; null for the built one. */
  readonly imported: string | null;
}

const ANOTHER = 'Choose another appliance with gnt-appliance use NAME or --appliance NAME';
const REBUILD_HINT = 'Build an intact one: gnt-appliance build';

/** The appliances of this node, by name: the built one and the imported ones. */
export function createApplianceFiles(options: ApplianceFilesOptions) {
  const placeOf = (name: string): Place =>
    name === BUILT_APPLIANCE
      ? { dir: options.dir, hint: REBUILD_HINT, imported: null }
      : {
          dir: join(options.importedDir, name),
          imported: name,
          hint: `Import it on this node: gnt-appliance import DIR|TAR --name ${name}. ${ANOTHER}`,
        };
  /**
   * Reads the manifest and compares the checksums of all files with it.
   * @throws AppError APPLIANCE_MISSING, APPLIANCE_CORRUPT; VALIDATION for an imported appliance
   * that cannot run on this host
   */
  const verify = async (name: string): Promise<Appliance> => {
    const place = placeOf(name);
    const { dir } = place;
    const { manifest, digest } = await readManifest(place);
    if (place.imported !== null) requireFit(place.imported, manifest);
    const files = [manifest.kernel, manifest.initrd, manifest.root];
    await Promise.all(files.map((file) => verifyFile(place, file)));
    return {
      manifest,
      digest,
      kernelPath: join(dir, manifest.kernel.name),
      initrdPath: join(dir, manifest.initrd.name),
      rootPath: join(dir, manifest.root.name),
    };
  };
  // Concurrent installations share one build.
  let building: Promise<void> | undefined;
  return {
    verify,
    /** Returns the memory of the appliance by its manifest; the default without a manifest. */
    memoryMiB: (name: string): Promise<number> =>
      readManifest(placeOf(name)).then(
        ({ manifest }) => manifest.memoryMiB,
        () => USUAL_MEMORY_MIB,
      ),
    /** Returns the names of its own hooks by its manifest; none without a readable manifest. */
    hooksOf: (name: string): Promise<readonly string[]> =>
      readManifest(placeOf(name)).then(
        ({ manifest }) => manifest.hooks.map((hook) => hook.name),
        () => [],
      ),
    /**
     * Verifies the appliance. Builds it first when the built one is missing or damaged. An imported
     * appliance is never replaced.
     */
    ensure: async (name: string, context: JobContext): Promise<Appliance> => {
      if (name !== BUILT_APPLIANCE) return verify(name);
      const verifyBuilt = (): Promise<Appliance> => verify(BUILT_APPLIANCE);
      for (;;) {
        const intact = await verifyOrExplain(verifyBuilt, context);
        if (intact !== undefined) return intact;
        const isOwn = building === undefined;
        building ??= build(options, context).finally(() => {
          building = undefined;
        });
        try {
          await (isOwn ? building : waitForOther(building, context));
        } catch (error) {
          context.signal.throwIfAborted();
          // Only the job of the other build ended. This job builds now.
          const wasEnded =
            isAppError(error, 'JOB_CANCELED') || isAppError(error, 'JOB_INTERRUPTED');
          if (isOwn || !wasEnded) throw error;
          continue;
        }
        return await verifyBuilt();
      }
    },
  };
}

export type ApplianceFiles = ReturnType<typeof createApplianceFiles>;

async function verifyOrExplain(
  verify: () => Promise<Appliance>,
  context: JobContext,
): Promise<Appliance | undefined> {
  try {
    return await verify();
  } catch (error) {
    if (!isAppError(error, 'APPLIANCE_MISSING') && !isAppError(error, 'APPLIANCE_CORRUPT'))
      throw error;
    context.report.log(`${messageOf(error)}; building an appliance`, 'warn');
    return undefined;
  }
}

/** Waits for another job's build. Cancellation ends only the wait. */
async function waitForOther(building: Promise<void>, context: JobContext): Promise<void> {
  context.report.log('waiting for another installation that is building the appliance');
  await orAborted(building, context.signal);
}

async function readManifest({ dir, hint }: Place): Promise<Pick<Appliance, 'manifest' | 'digest'>> {
  try {
    const bytes = await readFile(join(dir, 'manifest.json'));
    return {
      manifest: applianceManifest.parse(JSON.parse(bytes.toString('utf8'))),
      digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    };
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') {
      throw new AppError('APPLIANCE_MISSING', `no appliance in ${dir}`, {
        hint,
        cause: error,
      });
    }
    throw new AppError(
      'APPLIANCE_CORRUPT',
      `cannot read ${dir}/manifest.json: ${messageOf(error)}`,
      {
        hint,
        cause: error,
      },
    );
  }
}

/**
 * Refuses an imported appliance that does not fit this host: another node of the cluster may have
 * chosen it.
 * @throws AppError VALIDATION
 */
function requireFit(name: string, manifest: ApplianceManifest): void {
  const unfit = describeUnfit(manifest, { architecture: machine(), memoryBytes: totalmem() });
  if (unfit === null) return;
  throw new AppError('VALIDATION', `the appliance '${name}' cannot run on this node: ${unfit}`, {
    hint: ANOTHER,
  });
}

async function verifyFile(
  { dir, hint }: Place,
  expected: ApplianceManifest['root'],
): Promise<void> {
  const path = join(dir, expected.name);
  const corrupt = (what: string, cause?: unknown): AppError =>
    new AppError('APPLIANCE_CORRUPT', `${path} ${what}`, { hint, cause });
  try {
    const { size } = await stat(path);
    if (size !== expected.sizeBytes)
      throw corrupt(`has ${size} bytes, but its manifest says ${expected.sizeBytes}`);
    if ((await hashFile(path)) !== expected.sha256) throw corrupt('differs from its manifest');
  } catch (error) {
    if (isAppError(error)) throw error;
    throw corrupt(`cannot be read: ${messageOf(error)}`, error);
  }
}

/** Time from SIGTERM to SIGKILL, for the builder to remove its folders and mounts. */
const BUILDER_GRACE_MS = 30_000;
/** Limit for reading the rest of the output after the builder's end. */
const BUILDER_DRAIN_MS = 30_000;

/** Runs the builder. Cancelling the job ends the builder, and waits for its end. */
async function build(options: ApplianceFilesOptions, context: JobContext): Promise<void> {
  const { builder, builderEnvironment } = options;
  let failure: AppError | undefined;
  let complaint = '';
  const end = await runInGroup({
    command: builder.command,
    args: [...builder.args, 'build', '--progress-json'],
    environment: builderEnvironment,
    launch: (...program) =>
      options.launch(...program).catch((error: unknown) => {
        const message = `cannot start the appliance builder: ${messageOf(error)}`;
        throw new AppError('APPLIANCE_BUILD', message, { cause: error });
      }),
    onLine: (line, stream) => {
      if (stream === 'stderr') {
        complaint = line.trim() || complaint;
        return;
      }
      const progress = parseProgress(line);
      if (progress?.type === 'step') context.report.log(`appliance: ${progress.text}`);
      if (progress?.type === 'error') failure = failureOf(progress);
    },
    ...{ signal: context.signal, graceMs: BUILDER_GRACE_MS, drainMs: BUILDER_DRAIN_MS },
  });
  if (end.isSuccess) return;
  throw (
    failure ??
    new AppError('APPLIANCE_BUILD', `the appliance builder failed: ${complaint}`, {
      hint: 'Run it to see the whole output: gnt-appliance build',
    })
  );
}

type Progress = z.output<typeof buildProgress>;

function failureOf({ code, message, hint }: Extract<Progress, { type: 'error' }>): AppError {
  return new AppError(isErrorCode(code) ? code : 'APPLIANCE_BUILD', message, { hint });
}

/** Returns undefined for other output of the builder's tools. */
function parseProgress(line: string): Progress | undefined {
  return buildProgress.safeParse(parseJson(line)).data;
}
