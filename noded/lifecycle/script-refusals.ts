import type { LifecycleRecord } from '#shared/contract/lifecycle.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** A script was asked of a guest that runs none now. */
export function notUp(name: string, record: LifecycleRecord | undefined): AppError {
  const how = record?.announced ? 'going down' : record?.state;
  const why =
    how === undefined
      ? 'has no run lists, or does not run'
      : `is ${how}: scripts are run in a guest that is operational or stranded`;
  return new AppError('INSTANCE_STATE', `instance '${name}' ${why}`, {
    hint: `gnt-instance info ${name} says how it is`,
  });
}

/** A guest that is up did not take a script. */
export function silentAgent(name: string, silenceMs: number): AppError {
  return new AppError(
    'GUEST_AGENT_SILENT',
    `nothing in the guest of '${name}' took the script within ${silenceMs / 1000} s`,
    {
      hint: `in the guest: curl -s ${SERVICE_URL}/ganeti/latest/guest/enable | sh`,
    },
  );
}
