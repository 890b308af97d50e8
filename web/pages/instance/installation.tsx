import type { JSX } from 'preact';
import { useText } from '../../live/use-stream.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { formatDuration, formatTime } from '../../parts/format.ts';
import { JobView } from '../../parts/job-view.tsx';
import { commandLine } from '../../parts/quote.ts';
import { State } from '../../parts/state.tsx';
import { Text } from '../../parts/text.tsx';
import { Link } from '../../shell/router.tsx';
import { Fact, Facts } from './overview.tsx';
import type { SectionProps } from './instance.tsx';

export function InstallationSection({ instance: { name, install } }: SectionProps): JSX.Element {
  if (install === null)
    return (
      <>
        <p class="soft">Nothing was installed here: the instance was created with empty disks.</p>
        <CommandLine>{commandLine('gnt-instance', 'reinstall', name)}</CommandLine>
      </>
    );
  return install.state === 'installing' ? (
    <>
      <JobView id={install.jobId} />
      <CommandLine>{commandLine('gnt-job', 'watch', String(install.jobId))}</CommandLine>
    </>
  ) : (
    <Ended name={name} install={install} />
  );
}

type Install = NonNullable<SectionProps['instance']['install']>;

function Ended({
  name,
  install,
}: {
  readonly name: string;
  readonly install: Install;
}): JSX.Element {
  const { state, startedAtMs, endedAtMs, stages, error, jobId } = install;
  const { value: log } = useText(`/v1/instances/${encodeURIComponent(name)}/log`);
  const totalMs = Math.max(1, ...stages.map(({ durationMs }) => durationMs));
  return (
    <>
      {error !== null && (
        <div class="failure" role="alert">
          <p>
            <Text>{error.message}</Text>
          </p>
          {error.hint !== null && (
            <p class="hint">
              <Text>{error.hint}</Text>
            </p>
          )}
        </div>
      )}
      <Facts title="Last installation">
        <Fact name="Result">
          <State of={state === 'failed' ? 'error' : state} />
        </Fact>
        <Fact name="Job">
          <Link to={`/jobs/${jobId}`}>{jobId}</Link>
        </Fact>
        <Fact name="Started">{formatTime(startedAtMs)}</Fact>
        {endedAtMs !== null && (
          <Fact name="Duration">{formatDuration(endedAtMs - startedAtMs)}</Fact>
        )}
      </Facts>
      {stages.length > 0 && (
        <ol class="stages" aria-label="Stages">
          {stages.map(({ stage, durationMs, summary }) => (
            <li key={stage} class="done">
              <span class="stage">{stage}</span>
              <span class="number">{formatDuration(durationMs)}</span>
              <span class="soft">
                <span class="length" style={{ width: `${(durationMs / totalMs) * 120}px` }} />
                <Text>{summary}</Text>
              </span>
            </li>
          ))}
        </ol>
      )}
      <section>
        <h2>Log</h2>
        <pre class="log" tabIndex={0} aria-label="Log of the installation">
          <Text>{log.value}</Text>
        </pre>
      </section>
      <CommandLine>{commandLine('gnt-instance', 'log', name)}</CommandLine>
    </>
  );
}
