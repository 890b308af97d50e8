import { NO_PROGRESS } from '#shared/contract/lifecycle.ts';
import type {
  LifecycleStatus,
  RunListEnvironment,
  ViewLifecycle,
  ViewScript,
} from '#shared/contract/lifecycle.ts';

export const RUN = '11111111-1111-4111-8111-111111111111';

export function scriptOf(
  name: string,
  body: string,
  env: RunListEnvironment | null = null,
): ViewScript {
  return { name, content: Buffer.from(`#!/bin/sh\n${body}\n`).toString('base64'), env };
}

/** Returns run lists for a view; `GREETING` and the example view's private parameter are inputs. */
export function lifecycleOf({
  lists,
  ...status
}: Partial<LifecycleStatus> & { readonly lists: ViewLifecycle['lists'] }): ViewLifecycle {
  return {
    status: {
      ...{ state: 'booting', run: RUN, kind: null, deadlineMs: null },
      ...{ decommissionTimeoutS: 180, next: null },
      ...status,
    },
    progress: NO_PROGRESS,
    lists,
    attachments: [{ name: 'a file', content: Buffer.from('attached').toString('base64') }],
    env: { GREETING: { text: 'hello' }, hostkey: { parameter: 'hostkey' } },
    commandEnv: {},
  };
}
