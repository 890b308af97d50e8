import type { JobRecord } from '#shared/contract/job.ts';
import { AppError, toError } from '#shared/errors/app-error.ts';
import type { NodeClient } from '../client/node-client.ts';
import { watchJobEvents } from '../client/job-events.ts';
import type { Context } from '../terminal/context.ts';
import { failureOfJob } from '../failures/failure.ts';
import { sanitizeText } from '../render/sanitize.ts';
import { createView } from './view.ts';
import { applyJobEvent, startProgress } from './state.ts';

/** A second interrupt within this time cancels the job. */
const SECOND_INTERRUPT_MS = 3000;

/**
 * Shows a job's progress until its end. Prints the output of a script in a guest, unless stdout is
 * for JSON.
 * @throws CommandFailure when the job did not succeed, AppError INTERRUPTED when the user left it.
 */
export async function watchJob(
  context: Context,
  id: number,
  { json = false }: { readonly json?: boolean | undefined } = {},
): Promise<JobRecord> {
  const client = await context.client();
  const view = await createView(context, id, (text) => {
    if (!json) context.terminal.stdout.write(sanitizeText(text));
  });
  const detached = new AbortController();
  const release = handleInterrupts(context, client, id, {
    pause: () => view.close(),
    leave: (error) => detached.abort(error),
  });
  let progress = startProgress(id);
  try {
    for await (const event of watchJobEvents(client, id, detached.signal)) {
      if (event.type === 'reconnecting') {
        view.lost();
        continue;
      }
      progress = applyJobEvent(progress, event);
      view.show(event, progress);
    }
  } finally {
    release();
    view.close();
  }
  detached.signal.throwIfAborted();
  if (!progress.job) throw new Error(`the events of job ${id} ended without its result`);
  if (progress.job.status !== 'success') throw failureOfJob(progress.job);
  return progress.job;
}

interface InterruptActions {
  readonly pause: () => void;
  readonly leave: (error: Error) => void;
}

/**
 * Handles interrupts. The first prints how to watch the job again, and leaves after a moment. A
 * second within that moment cancels the job and leaves.
 */
function handleInterrupts(
  context: Context,
  client: NodeClient,
  id: number,
  actions: InterruptActions,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let count = 0;
  const left = (what: string): AppError =>
    new AppError('INTERRUPTED', what, {
      hint: `gnt-job watch ${id}`,
      details: { job: id },
    });
  const release = context.interrupts.take(() => {
    count += 1;
    if (count === 1) {
      actions.pause();
      context.note(
        `job ${id} continues: gnt-job watch ${id}\n` +
          `press Ctrl-C again within ${SECOND_INTERRUPT_MS / 1000} s to cancel it`,
      );
      timer = setTimeout(() => actions.leave(left(`job ${id} continues`)), SECOND_INTERRUPT_MS);
    } else if (count === 2) {
      clearTimeout(timer);
      context.note(`canceling job ${id}`);
      client.ask('DELETE /v1/jobs/{id}', { id }).then(
        () => actions.leave(left(`job ${id} is being canceled`)),
        (error: unknown) => actions.leave(toError(error)),
      );
    } else {
      actions.leave(left(`job ${id} may continue`));
    }
  });
  return () => {
    clearTimeout(timer);
    release();
  };
}
