import { type ViewBoot, type ViewBootFile, viewBoot } from '#shared/contract/boot-view.ts';
import type { InstanceRecord, RunningBootEnv } from '#shared/contract/instance.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { BootFile, BootPlan } from '../../netboot/boot-plan.ts';
import { type BootTree, createRepositoryTree } from '../../content/downloads/boot-tree.ts';
import { type BootSources, bootEnvNotFound, loadBootPlan } from '../../netboot/load-boot-plan.ts';
import type { PromisedTrees } from '../../netboot/promised-trees.ts';
import type { NewInstance } from '../../records/instance-repository.ts';
import { bootEnvOfRun, installingBootEnv, refuseUnbootableEnv } from './boot-environment.ts';
import { GivenBoots } from './given-boots.ts';
import { type JobSecrets, noSecrets } from '../parameters/job-secrets.ts';
import { loadParameterLayers, type ParameterSources } from '../parameters/load-parameters.ts';
import { resolveParameters } from '../parameters/os-parameters.ts';

const ASK_TIMEOUT_MS = 15_000;
/** Stands in for the channel that a new instance does not have yet. */
const NO_CHANNEL = { ip: '169.254.0.1', mac: '52:54:00:00:00:00' } as const;

export interface BootViewsDependencies {
  readonly sources: BootSources & { readonly clusters: ParameterSources };
  /** Holds the boot files that are served to machines. */
  readonly trees: Pick<PromisedTrees, 'offer' | 'forget'>;
  readonly logger: Logger;
  /** Time limit for the check that a repository has the boot files. */
  readonly askTimeoutMs?: number;
}

/**
 * Renders the boot files for machines that boot from their channels, with each view. Nothing is
 * stored.
 */
export function createBootViews(dependencies: BootViewsDependencies) {
  const { sources, trees, logger, askTimeoutMs = ASK_TIMEOUT_MS } = dependencies;
  const given = new GivenBoots();

  const plan = async (
    name: string,
    instance: NewInstance | InstanceRecord,
    secrets: JobSecrets,
  ): Promise<BootPlan> => {
    const layers = await loadParameterLayers(instance, sources.clusters, secrets.osParameters);
    const parameters = resolveParameters(layers);
    const channel = {
      ...NO_CHANNEL,
      uuid: instance.uuid,
      ...('channel' in instance && instance.channel),
    };
    return loadBootPlan(name, { ...instance, channel }, { parameters, layers }, sources);
  };
  const make = async (name: string, instance: InstanceRecord, secrets: JobSecrets) => {
    const made = await plan(name, instance, secrets);
    return { view: encodePlan(made), source: made.source };
  };
  /** @returns undefined if only the value of a secret makes the rendering valid */
  const makeWithoutSecrets = async (
    name: string,
    instance: InstanceRecord,
  ): Promise<ViewBoot | undefined> => {
    try {
      return encodePlan(await plan(name, instance, noSecrets));
    } catch (error) {
      if (!isBootError(error)) throw error;
      return undefined;
    }
  };
  const render = async (name: string, instance: InstanceRecord, secrets: JobSecrets) => {
    const names = [...secrets.osParameters.keys()];
    const open = names.length === 0 ? undefined : await makeWithoutSecrets(name, instance);
    const { view, source } = await make(name, instance, secrets);
    // Offered at once: until then another job may remove the archive of this plan.
    trees.offer(instance.uuid, source);
    // Later views use this if rendering fails. It holds no secret of this job.
    const later = open ?? (names.length === 0 ? view : withoutSecretFiles(view, names));
    given.give(instance.uuid, view, { view: later, source });
    return view;
  };
  const nameOf = (instance: InstanceRecord): string | null => {
    const name = asItRuns(instance).communication ? bootEnvOfRun(instance) : null;
    if (name !== null) return name;
    given.forget(instance.uuid);
    trees.offer(instance.uuid, null);
    return null;
  };
  /** Returns the guest's last boot; `kept` if only metad has it, from an earlier daemon. */
  const giveAgain = (uuid: string): ViewBoot | 'kept' => {
    const last = given.last(uuid);
    if (last === null) return 'kept';
    trees.offer(uuid, last.source);
    return last.view;
  };
  /**
   * Returns the next boot of a running guest. If rendering fails, the guest keeps its last boot;
   * metad may still have the one from an earlier daemon.
   * @throws AppError of the store
   */
  const forRun = async (
    instance: InstanceRecord,
    secrets: JobSecrets,
  ): Promise<ViewBoot | 'kept' | undefined> => {
    const name = nameOf(instance);
    if (name === null) return undefined;
    try {
      return await render(name, instance, secrets);
    } catch (error) {
      if (!isBootError(error)) throw error;
      logger.warn('boot.not-rendered', { instance: instance.name, bootEnv: name, err: error });
      given.fail(instance.uuid, name, error);
      // The guest keeps its tree, even one from an earlier daemon.
      return giveAgain(instance.uuid);
    }
  };
  return {
    forRun,
    /**
     * Returns the guest's last boot without rendering, for an unchanged instance. Rendering is left
     * to its next start and to changes of its record.
     */
    asGiven: async (instance: InstanceRecord): Promise<ViewBoot | 'kept' | undefined> => {
      const known = given.state(instance.uuid);
      const isOfIt = known !== null && known.name === nameOf(instance);
      return isOfIt ? giveAgain(instance.uuid) : forRun(instance, noSecrets);
    },
    /**
     * Refuses an unusable BootEnv before anything changes.
     * @throws AppError VALIDATION, BOOTENV_*
     */
    check: async (
      instance: NewInstance | InstanceRecord,
      secrets: JobSecrets,
      signal: AbortSignal,
    ): Promise<void> => {
      refuseUnbootableEnv(instance);
      const name = installingBootEnv(instance) ?? bootEnvOfRun(instance);
      if (name === null) return;
      const planned = await plan(name, instance, secrets);
      if (planned.lacksKernel) throw noKernel(name);
      encodePlan(planned);
      const { source, kernel, initrds } = planned;
      if (source?.kind !== 'repository') return;
      const tree = createRepositoryTree(source.url);
      const paths = [...(kernel === null ? [] : [kernel]), ...initrds];
      // Parallel requests under one limit, since the instance is locked meanwhile.
      const ended = new AbortController();
      const late = AbortSignal.timeout(askTimeoutMs);
      const asking = AbortSignal.any([signal, ended.signal, late]);
      const asked = { name, url: source.url };
      try {
        await Promise.all(paths.map((path) => requireFile(tree, path, asked, asking)));
      } catch (error) {
        if (error !== late.reason) throw error;
        const reason = `no answer within ${askTimeoutMs / 1000} s`;
        throw noFile(paths.join(', '), asked, reason, error);
      } finally {
        ended.abort();
      }
    },
    /**
     * Returns the boot of a machine that is about to start.
     * @throws AppError BOOTENV_*, of the store
     */
    forStart: async (
      instance: InstanceRecord,
      secrets: JobSecrets,
    ): Promise<ViewBoot | undefined> => {
      const name = nameOf(instance);
      return name === null ? undefined : render(name, instance, secrets);
    },
    /** Returns the boot of an installation. @throws AppError BOOTENV_* */
    forInstall: async (
      instance: InstanceRecord,
      secrets: JobSecrets,
    ): Promise<ViewBoot | undefined> => {
      const name = installingBootEnv(instance);
      if (name === null) return undefined;
      const { view, source } = await make(name, instance, secrets);
      trees.offer(instance.uuid, source);
      return view;
    },
    /**
     * Returns true if an installation by this BootEnv reports nothing, so that a power-off means
     * success.
     */
    isSilent: async (instance: Pick<InstanceRecord, 'bootEnv'>): Promise<boolean> => {
      const name = installingBootEnv(instance);
      if (name === null) return false;
      const bootEnv = await sources.clusters.loadBootEnv(name);
      if (bootEnv === undefined) throw await bootEnvNotFound(name, sources.clusters);
      return bootEnv.Meta['report'] === 'none';
    },
    /** Returns the boot of the present run; null for a guest that boots its disk. */
    state: (uuid: string): RunningBootEnv | null => given.state(uuid),
    /** Must be called when the machine ends. */
    forget: (uuid: string): void => {
      given.forget(uuid);
      trees.forget(uuid);
    },
  };
}

export type BootViews = ReturnType<typeof createBootViews>;

function noKernel(name: string): AppError {
  return new AppError('BOOTENV_INVALID', `BootEnv ${name} has no Kernel for amd64`, {
    details: { bootEnv: name },
    hint: 'Set OS.SupportedArchitectures.amd64.Kernel: instances are amd64',
  });
}

function isBootError(error: unknown): error is AppError {
  return (
    isAppError(error, 'BOOTENV_NOT_FOUND') ||
    isAppError(error, 'BOOTENV_INVALID') ||
    isAppError(error, 'BOOTENV_NO_SOURCE') ||
    isAppError(error, 'BOOTENV_RENDER')
  );
}

/**
 * @throws AppError BOOTENV_INVALID for values outside a view's limits, such as a long loader path
 */
function encodePlan({ bootEnv, script, files, source, httpLoader }: BootPlan): ViewBoot {
  const view = {
    bootEnv,
    script,
    loader: httpLoader,
    files: Object.fromEntries(files.map((file) => [file.path, encodeFile(file)])),
    hasTree: source !== null,
  };
  const parsed = viewBoot.safeParse(view);
  if (parsed.success) return view;
  const [issue] = parsed.error.issues;
  const field = issue?.path[0] === 'loader' ? `the loader '${httpLoader ?? ''}'` : 'its files';
  throw new AppError(
    'BOOTENV_INVALID',
    `boot environment ${bootEnv}: ${field}: ${issue?.message ?? ''}`,
    {
      details: { bootEnv },
      hint: 'Use paths that need no URL escaping, and a loader of at most 128 characters.',
    },
  );
}

/** @param names of the secrets that the files may contain */
function withoutSecretFiles(view: ViewBoot, names: readonly string[]): ViewBoot {
  const files = Object.entries(view.files).map(([path, file]): [string, ViewBootFile] => [
    path,
    'content' in file && file.isSecretBearing ? { ...basisOf(file), lost: [...names] } : file,
  ]);
  return { ...view, files: Object.fromEntries(files) };
}

function encodeFile({ contents, isSecretBearing, lostSecrets, basis }: BootFile): ViewBootFile {
  if (contents === null) return { ...basisOf({ basis }), lost: [...lostSecrets] };
  const content = Buffer.from(contents).toString('base64');
  return { ...basisOf({ basis }), content, isSecretBearing };
}

function basisOf({ basis }: { readonly basis?: string | null | undefined }): { basis?: string } {
  return basis == null ? {} : { basis };
}

interface Asked {
  readonly name: string;
  readonly url: string;
}

/** @throws AppError BOOTENV_NO_SOURCE, or the signal's reason */
async function requireFile(
  tree: BootTree,
  path: string,
  asked: Asked,
  signal: AbortSignal,
): Promise<void> {
  const answer = await tree.open({
    path: path.split('/').map(encodeURIComponent).join('/'),
    method: 'HEAD',
    headers: {},
    signal,
  });
  if (answer.kind === 'slice') return answer.handle.close();
  if (answer.kind === 'answer') {
    answer.body.destroy();
    if (answer.status === 200) return;
  }
  const reason = answer.kind === 'refusal' ? answer.reason : `status ${answer.status}`;
  throw noFile(path, asked, reason);
}

function noFile(path: string, { name, url }: Asked, reason: string, cause?: unknown): AppError {
  return new AppError(
    'BOOTENV_NO_SOURCE',
    `boot environment ${name}: ${path} of ${url}: ${reason}`,
    {
      details: { bootEnv: name, path, url },
      hint: `Check the param package-repositories, or open the archive: gnt-bootenv add-iso ${name}`,
      cause,
    },
  );
}
