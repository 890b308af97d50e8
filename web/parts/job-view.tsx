import type { JSX } from 'preact';
import type { Schemas } from '../../client/api-client.ts';
import { addJobEvent, type JobProgress, NO_PROGRESS, rateOf } from '../live/job-progress.ts';
import { useLines } from '../live/use-stream.ts';
import { Bar } from './bar.tsx';
import { Failure } from './failure.tsx';
import { formatBytes, formatDuration } from './format.ts';
import { State } from './state.tsx';
import { Text } from './text.tsx';

/** Follows a job: its state, stages with their times, transfers, log and failure. */
export function JobView({ id }: { readonly id: number }): JSX.Element {
  const { value, error } = useLines<Schemas['JobEvent'], JobProgress>(
    `/v1/jobs/${id}/events`,
    NO_PROGRESS,
    addJobEvent,
  );
  const progress = value.value;
  const { status, transfer, lines, job } = progress;
  if (error.value !== undefined) return <Failure error={error.value} />;
  return (
    <>
      <p role="status">{status === null ? 'Loading …' : <State of={status} />}</p>
      {job?.error && <JobError error={job.error} />}
      <Stages progress={progress} />
      {transfer !== null && <Transfer transfer={transfer} />}
      {lines.length > 0 && (
        <section>
          <h2>Log</h2>
          <pre class="log" tabIndex={0} aria-label="Log">
            {lines.map((line, index) => (
              <Line key={index} text={line} />
            ))}
          </pre>
        </section>
      )}
    </>
  );
}

function Line({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      <Text>{text}</Text>
      {'\n'}
    </>
  );
}

function JobError({
  error,
}: {
  readonly error: NonNullable<Schemas['JobRecord']['error']>;
}): JSX.Element {
  const { message, hint, stage, logTail } = error;
  return (
    <div class="failure" role="alert">
      <p>
        {stage !== null && `In stage ${stage}: `}
        <Text>{message}</Text>
      </p>
      {hint !== null && (
        <p class="hint">
          <Text>{hint}</Text>
        </p>
      )}
      {logTail.length > 0 && (
        <pre>
          <Text>{logTail.join('\n')}</Text>
        </pre>
      )}
    </div>
  );
}

function Stages({ progress: { stages } }: { readonly progress: JobProgress }): JSX.Element | null {
  if (stages.length === 0) return null;
  return (
    <ol class="stages" aria-label="Stages">
      {stages.map(({ stage, durationMs, summary }) => (
        <li key={stage} class={durationMs === null ? 'busy' : 'done'}>
          <span class="stage">{stage}</span>
          <span class="number">{durationMs === null ? 'running' : formatDuration(durationMs)}</span>
          <span class="soft">
            <Text>{summary}</Text>
          </span>
        </li>
      ))}
    </ol>
  );
}

function Transfer({
  transfer,
}: {
  readonly transfer: NonNullable<JobProgress['transfer']>;
}): JSX.Element {
  const { activity, doneBytes, totalBytes } = transfer;
  const { bytesPerS, remainingS } = rateOf(transfer);
  const words = [
    totalBytes === null
      ? formatBytes(doneBytes)
      : `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`,
    ...(bytesPerS === null ? [] : [`${formatBytes(bytesPerS)}/s`]),
    ...(remainingS === null ? [] : [`${formatDuration(remainingS * 1000)} left`]),
  ].join(', ');
  return totalBytes === null ? (
    <p>
      {activity}: {words}
    </p>
  ) : (
    <Bar label={activity} value={doneBytes} max={totalBytes} text={words} />
  );
}
