import { instanceView } from '#shared/contract/view.ts';
import type { ViewBoot } from '#shared/contract/boot-view.ts';
import type { RunListEnvironment, ViewLifecycle, ViewScript } from '#shared/contract/lifecycle.ts';
import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { REDACTED } from '#shared/contract/redacted.ts';
import type { InstanceView, ViewInstall } from '#shared/contract/view.ts';
import type { Visibility } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { GuestAgent } from './guest-agent.ts';
import { describeIssue } from './validation-message.ts';

/**
 * An OS parameter that cannot be printed by accident. The value null marks a secret that the host
 * has lost.
 */
export interface ServedParameter {
  readonly value: Secret | null;
  readonly visibility: Visibility;
}

/** A validated view, the only input of all served content. */
export interface ServedView extends Omit<InstanceView, 'osParameters'> {
  readonly osParameters: ReadonlyMap<string, ServedParameter>;
  /** Absent in Ganeti mode, which has no run lists. */
  readonly guestAgent?: GuestAgent;
}

/** @throws AppError VALIDATION that names the first wrong field without its value */
export function parseView(value: unknown): ServedView {
  const result = instanceView.safeParse(value);
  if (!result.success) {
    throw new AppError('VALIDATION', `malformed view: ${describeIssue(result.error)}`);
  }
  const view = result.data;
  checkView(view);
  const osParameters = new Map(
    Object.entries(view.osParameters).map(([name, { value: plain, visibility }]) => [
      name,
      { value: plain === null ? null : new Secret(plain), visibility },
    ]),
  );
  return { ...view, osParameters };
}

/** Returns the view as an operator may see it: private and secret values and inputs are masked. */
export function redactView(view: ServedView): ServedView {
  const osParameters = new Map(
    [...view.osParameters].map(([name, parameter]) => [
      name,
      isHiddenFromLogs(parameter.visibility) && parameter.value !== null
        ? { ...parameter, value: new Secret(REDACTED) }
        : parameter,
    ]),
  );
  return {
    ...view,
    osParameters,
    install: view.install && redactHooks(view.install),
    ...(view.lifecycle && { lifecycle: redactInputs(view.lifecycle) }),
    ...(view.boot && { boot: redactBootFiles(view.boot) }),
  };
}

/** Masks the texts of inputs, which are hidden wherever they are stored (`redactOpcode`). */
function redactInputs(lifecycle: ViewLifecycle): ViewLifecycle {
  const redact = (environment: RunListEnvironment): RunListEnvironment =>
    Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [
        name,
        'text' in value ? { text: REDACTED } : value,
      ]),
    );
  const redactAll = (scripts: readonly ViewScript[]): ViewScript[] =>
    scripts.map((script) => ({ ...script, env: script.env && redact(script.env) }));
  const { boot, operational, decommission } = lifecycle.lists;
  return {
    ...lifecycle,
    env: redact(lifecycle.env),
    commandEnv: redact(lifecycle.commandEnv),
    lists: {
      boot: redactAll(boot),
      operational: redactAll(operational),
      decommission: redactAll(decommission),
    },
  };
}

/** Masks whole files that contain private or secret values: the position of a value is unknown. */
function redactBootFiles(boot: ViewBoot): ViewBoot {
  const content = Buffer.from(`${REDACTED}\n`).toString('base64');
  const files = Object.entries(boot.files).map(([path, file]) => {
    const isHidden = 'content' in file && file.isSecretBearing;
    return [path, isHidden ? { ...file, content } : file] as const;
  });
  return { ...boot, files: Object.fromEntries(files) };
}

/**
 * Masks hooks of the instance, which are as private as its private parameters. Other hooks are
 * files that an operator can read.
 */
function redactHooks(install: ViewInstall): ViewInstall {
  const hooks = install.hooks?.map((document) =>
    document.source === 'instance' ? { ...document, content: '' } : document,
  );
  return { ...install, ...(hooks && { hooks }) };
}

function checkView(view: InstanceView): void {
  const communication = view.nics.filter((nic) => nic.communication);
  if (communication.length > 1) {
    throw new AppError('VALIDATION', 'malformed view: nics: more than one communication NIC');
  }
  if (communication[0] && communication[0].mac !== view.channel.mac) {
    throw new AppError(
      'VALIDATION',
      'malformed view: channel.mac: differs from the communication NIC',
    );
  }
  if (view.mode === 'install' && !view.install) {
    throw new AppError('VALIDATION', 'malformed view: install: missing in mode install');
  }
}
