import { computed } from '@preact/signals';
import type { JSX } from 'preact';
import { type Instance, instances } from '../live/cluster.ts';
import { mayWrite } from '../live/session.ts';
import { CommandLine } from '../parts/command-line.tsx';
import { formatMiB, formatNumber, formatShortTime } from '../parts/format.ts';
import { sortRows } from '../parts/rows.ts';
import { State, wordOfState } from '../parts/state.tsx';
import { Text } from '../parts/text.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { Page } from '../shell/page.tsx';
import { instancePath, Link, query, setQuery } from '../shell/router.tsx';
import { chooseInstances, listCommand } from './choose-instances.ts';

const byText = new Intl.Collator('en', { numeric: true }).compare;

/** Keys are the fields of `gnt-instance list`, so that the equivalent command sorts alike. */
const COLUMNS: readonly Column<Instance>[] = [
  {
    key: 'name',
    title: 'Name',
    cell: ({ name }) => (
      <Link to={instancePath(name)}>
        <Text>{name}</Text>
      </Link>
    ),
    compare: (a, b) => byText(a.name, b.name),
  },
  {
    key: 'status',
    title: 'State',
    width: 160,
    cell: ({ status }) => <State of={status} />,
    compare: (a, b) => byText(wordOfState(a.status), wordOfState(b.status)),
  },
  {
    key: 'pnode',
    title: 'Node',
    cell: ({ primaryNode }) => primaryNode,
    isWide: true,
    compare: (a, b) => byText(a.primaryNode, b.primaryNode),
  },
  {
    key: 'os',
    title: 'OS',
    width: 100,
    cell: ({ osType }) => (osType === null ? '' : <Text>{osType}</Text>),
    isWide: true,
    compare: (a, b) => byText(a.osType ?? '', b.osType ?? ''),
  },
  {
    key: 'be/vcpus',
    title: 'vCPUs',
    width: 84,
    isNumber: true,
    isWide: true,
    cell: ({ beparams }) => formatNumber(beparams.vcpus),
    compare: (a, b) => a.beparams.vcpus - b.beparams.vcpus,
  },
  {
    key: 'be/memory',
    title: 'Memory',
    width: 96,
    isWide: true,
    isNumber: true,
    cell: ({ beparams }) => formatMiB(beparams.memoryMiB),
    compare: (a, b) => a.beparams.memoryMiB - b.beparams.memoryMiB,
  },
  {
    key: 'ctime',
    title: 'Created',
    width: 172,
    isNumber: true,
    isWide: true,
    cell: ({ createdAtMs }) => formatShortTime(createdAtMs),
    compare: (a, b) => a.createdAtMs - b.createdAtMs,
  },
];

const choice = computed(() => ({
  name: query.value.get('name') ?? '',
  status: query.value.get('status') ?? '',
  node: query.value.get('node') ?? '',
  sort: query.value.get('sort') ?? 'name',
}));
const chosen = computed(() =>
  sortRows(chooseInstances(instances.items.value, choice.value), COLUMNS, choice.value.sort),
);
const statuses = computed(() => distinct(instances.items.value.map(({ status }) => status)));
const nodeNames = computed(() => distinct(instances.items.value.map((each) => each.primaryNode)));

function distinct(values: readonly string[]): readonly string[] {
  return [...new Set(values)].sort(byText);
}

export function InstancesPage(): JSX.Element {
  const { name, status, node, sort } = choice.value;
  const all = instances.items.value.length;
  const count = chosen.value.length;
  return (
    <Page
      title="Instances"
      actions={
        mayWrite.value && (
          <Link to="/launch" class="button primary">
            Launch
          </Link>
        )
      }
    >
      <div class="filters" role="search">
        <label class="grow">
          <span class="unseen">Filter by name</span>
          <input
            type="search"
            data-filter
            placeholder="Filter by name; * and ? are wildcards"
            value={name}
            onInput={(event) => setQuery({ name: event.currentTarget.value })}
          />
        </label>
        <Choice
          label="State"
          all="All states"
          value={status}
          values={statuses.value}
          of={wordOfState}
          parameter="status"
        />
        {nodeNames.value.length > 1 && (
          <Choice
            label="Node"
            all="All nodes"
            value={node}
            values={nodeNames.value}
            parameter="node"
          />
        )}
        <p role="status">
          {count === all ? '' : `${formatNumber(count)} of `}
          {formatNumber(all)} {all === 1 ? 'instance' : 'instances'}
        </p>
      </div>
      <CommandLine>{listCommand(choice.value)}</CommandLine>
      <VirtualTable
        label="Instances"
        columns={COLUMNS}
        rows={chosen.value}
        keyOf={({ uuid }) => uuid}
        sort={sort}
        onSort={(order) => setQuery({ sort: order === 'name' ? null : order })}
        empty={
          !instances.isLoaded.value
            ? 'Loading …'
            : all === 0
              ? 'There is no instance yet.'
              : 'No instance matches.'
        }
      />
    </Page>
  );
}

interface ChoiceProps {
  readonly label: string;
  /** Title of the choice without a limit. */
  readonly all: string;
  readonly value: string;
  readonly values: readonly string[];
  readonly of?: (value: string) => string;
  readonly parameter: string;
}

function Choice({
  label,
  all,
  value,
  values,
  of = (each) => each,
  parameter,
}: ChoiceProps): JSX.Element {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => setQuery({ [parameter]: event.currentTarget.value })}
    >
      <option value="">{all}</option>
      {values.map((each) => (
        <option key={each} value={each}>
          {of(each)}
        </option>
      ))}
    </select>
  );
}
