import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { LifecycleRecord } from '#shared/contract/lifecycle.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Lifecycles } from './lifecycles-contract.ts';

export function notUp(name: string, record: LifecycleRecord | undefined): AppError {
  const how = record?.announced ? 'shutting down' : record?.state;
  const why =
    how === undefined
      ? 'has no run lists, or is stopped'
      : `is ${how}: scripts run only in a guest that is operational or stranded`;
  return new AppError('INSTANCE_STATE', `instance '${name}' ${why}`, {
    hint: `Show its state: gnt-instance info ${name}`,
  });
}

export function silentAgent(name: string, silenceMs: number): AppError {
  return new AppError(
    'GUEST_AGENT_SILENT',
    `the guest of '${name}' did not pick up the script within ${silenceMs / 1000} s`,
    {
      hint: `Install curl or wget in the guest, then run there: curl -s ${SERVICE_URL}/ganeti/latest/guest/enable | sh`,
    },
  );
}

/** Returns why the decommission list of the present run failed, or null when it did not. */
export function undecommissionedReason(
  instance: Pick<InstanceRecord, 'uuid' | 'lifecycle'>,
  lifecycles: Pick<Lifecycles, 'state' | 'current'>,
): string | null {
  // Without lists in the present run, the record is of an earlier run.
  if (lifecycles.state(instance.uuid) !== 'failed') return null;
  const { kind, reason } = lifecycles.current(instance) ?? {};
  return kind == null ? null : (reason ?? '');
}

export function undecommissioned(name: string, how: string, reason: string): AppError {
  return new AppError('DECOMMISSION_TIMEOUT', `'${name}' ${how}, but ${reason}`, {
    hint: `Show the output of its scripts: gnt-instance audit ${name}. Allow more time: -H decommission_timeout=SECONDS`,
  });
}
