import { computed } from '@preact/signals';
import type { JSX } from 'preact';
import { type Job, jobs } from '../live/cluster.ts';
import { api, mayWrite } from '../live/session.ts';
import { ChangeButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { formatDuration, formatShortTime } from '../parts/format.ts';
import { JobView } from '../parts/job-view.tsx';
import { commandLine } from '../parts/quote.ts';
import { sortRows } from '../parts/rows.ts';
import { State } from '../parts/state.tsx';
import { Text } from '../parts/text.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { notify } from '../shell/notices.tsx';
import { Page } from '../shell/page.tsx';
import { Link, query, setQuery } from '../shell/router.tsx';

const ENDED: ReadonlySet<string> = new Set(['success', 'error', 'canceled']);

const COLUMNS: readonly Column<Job>[] = [
  {
    key: 'id',
    title: 'Job',
    cell: ({ id, summary }) => (
      <Link to={`/jobs/${id}`}>
        {id} <Text>{summary}</Text>
      </Link>
    ),
    compare: (a, b) => a.id - b.id,
  },
  { key: 'status', title: 'State', width: 104, cell: ({ status }) => <State of={status} /> },
  { key: 'node', title: 'Node', width: 160, cell: ({ node }) => node ?? '', isWide: true },
  {
    key: 'user',
    title: 'User',
    width: 96,
    cell: ({ submitter }) => submitter ?? 'root',
    isWide: true,
  },
  {
    key: 'received',
    title: 'Received',
    width: 160,
    isWide: true,
    cell: ({ receivedAtMs }) => formatShortTime(receivedAtMs),
    compare: (a, b) => a.receivedAtMs - b.receivedAtMs,
  },
  {
    key: 'duration',
    title: 'Duration',
    width: 96,
    isNumber: true,
    isWide: true,
    cell: ({ startedAtMs, endedAtMs }) =>
      startedAtMs === null || endedAtMs === null ? '' : formatDuration(endedAtMs - startedAtMs),
  },
];

const isOnlyOpen = computed(() => query.value.get('open') === '1');
const sort = computed(() => query.value.get('sort') ?? '-id');
const shown = computed(() => {
  const wanted = jobs.items.value.filter(({ status }) => !isOnlyOpen.value || !ENDED.has(status));
  return sortRows(wanted, COLUMNS, sort.value);
});

export function JobsPage(): JSX.Element {
  return (
    <Page title="Jobs">
      <div class="filters">
        <label class="inline">
          <input
            type="checkbox"
            data-filter
            checked={isOnlyOpen.value}
            onChange={(event) => setQuery({ open: event.currentTarget.checked ? '1' : null })}
          />
          Only jobs that have not ended
        </label>
      </div>
      <CommandLine>
        {commandLine('gnt-job', 'list', ...(isOnlyOpen.value ? ['--running'] : []))}
      </CommandLine>
      <VirtualTable
        label="Jobs"
        columns={COLUMNS}
        rows={shown.value}
        keyOf={({ id }) => id}
        sort={sort.value}
        onSort={(order) => setQuery({ sort: order === '-id' ? null : order })}
        empty={jobs.isLoaded.value ? 'There is no job.' : 'Loading …'}
      />
    </Page>
  );
}

export function JobPage({ id }: { readonly id: number }): JSX.Element {
  const job = jobs.items.value.find((each) => each.id === id);
  const cancel = async (): Promise<void> => {
    await api.DELETE('/v1/jobs/{id}', { params: { path: { id: String(id) } } });
    notify('good', `Job ${id} is being canceled`);
  };
  const isOpen = job !== undefined && !ENDED.has(job.status);
  return (
    <Page
      title={job === undefined ? `Job ${id}` : `Job ${id}: ${job.summary}`}
      actions={
        isOpen &&
        mayWrite.value && (
          <ChangeButton
            of={`job ${id}`}
            look="danger"
            command={commandLine('gnt-job', 'cancel', String(id))}
            run={cancel}
          >
            Cancel
          </ChangeButton>
        )
      }
    >
      <JobView id={id} />
      <CommandLine>
        {isOpen
          ? commandLine('gnt-job', 'watch', String(id))
          : commandLine('gnt-job', 'info', String(id))}
      </CommandLine>
    </Page>
  );
}
