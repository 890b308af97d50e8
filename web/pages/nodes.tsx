import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../client/api-client.ts';
import { nodes } from '../live/cluster.ts';
import { backgroundApi, mayWrite } from '../live/session.ts';
import { useLoaded } from '../live/use-loaded.ts';
import { Bar } from '../parts/bar.tsx';
import { OperationButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Failure } from '../parts/failure.tsx';
import { formatBytes, formatMiB, formatNumber, formatTime } from '../parts/format.ts';
import { commandLine } from '../parts/quote.ts';
import { State } from '../parts/state.tsx';
import { Text } from '../parts/text.tsx';
import { Page } from '../shell/page.tsx';
import { useTick } from '../live/use-tick.ts';

type ListedNode = Schemas['ListedNode'];
type NodeInfo = Extract<ListedNode, { readonly version: string }>;
type Report = Schemas['NodeReport'];

const REFRESH_MS = 15_000;

/** Shows the room of each node, its flags, and the findings of its doctor. */
export function NodesPage(): JSX.Element {
  const tick = useTick(REFRESH_MS);
  const states = nodes.value.map(({ name, state, flags }) => [name, state, flags]);
  const list = useLoaded(
    async (signal) => (await backgroundApi.GET('/v1/nodes', { signal })).data,
    [tick, JSON.stringify(states)],
  );
  const reports = useSignal<readonly Report[] | 'loading' | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const examine = async (): Promise<void> => {
    reports.value = 'loading';
    try {
      reports.value = (await backgroundApi.GET('/v1/doctor-of-nodes')).data ?? [];
      failure.value = undefined;
    } catch (error) {
      reports.value = undefined;
      failure.value = error;
    }
  };
  const isExamining = reports.value === 'loading';
  const found = reports.value === 'loading' ? undefined : reports.value;
  return (
    <Page
      title="Nodes"
      actions={
        <button type="button" disabled={isExamining} onClick={() => void examine()}>
          {isExamining ? 'Checking …' : 'Check all nodes'}
        </button>
      }
    >
      {list.error.value !== undefined && <Failure error={list.error.value} />}
      {failure.value !== undefined && <Failure error={failure.value} />}
      <div class="columns">
        {(list.value.value ?? []).map((node) => (
          <NodeCard
            key={node.name}
            node={node}
            report={found?.find((each) => each.node === node.name)}
          />
        ))}
      </div>
      <CommandLine>{commandLine('gnt-node', 'list')}</CommandLine>
      {found !== undefined && <CommandLine>{commandLine('gnt-cluster', 'verify')}</CommandLine>}
    </Page>
  );
}

interface NodeCardProps {
  readonly node: ListedNode;
  readonly report: Report | undefined;
}

function NodeCard({ node, report }: NodeCardProps): JSX.Element {
  const { name, flags } = node;
  const state = nodes.value.find((each) => each.name === name)?.state;
  return (
    <section class="panel" aria-label={`Node ${name}`}>
      <header class="title">
        <h2>
          <Text>{name}</Text>
        </h2>
        <State of={'silent' in node ? (state ?? 'silent') : (state ?? 'up')} />
        {flags.drained && <span class="state warn">drained: no new instances</span>}
      </header>
      {'silent' in node ? (
        <p class="soft">
          <Text>{node.silent}</Text>
        </p>
      ) : (
        <Room node={node} />
      )}
      {mayWrite.value && (
        <div class="buttons">
          {!flags.offline && (
            <OperationButton
              of={name}
              opcode={{ opcode: 'NODE_SET_PARAMS', name, drained: !flags.drained }}
            >
              {flags.drained ? 'Stop draining' : 'Drain'}
            </OperationButton>
          )}
          {flags.offline ? (
            <OperationButton of={name} opcode={{ opcode: 'NODE_SET_PARAMS', name, offline: false }}>
              Mark as online
            </OperationButton>
          ) : (
            'silent' in node && (
              <OperationButton
                of={name}
                opcode={{ opcode: 'NODE_SET_PARAMS', name, offline: true }}
                warning="Other nodes no longer contact it. Its instances stay on it."
              >
                Mark as offline
              </OperationButton>
            )
          )}
        </div>
      )}
      {report !== undefined && <Findings report={report} />}
    </section>
  );
}

function Room({ node }: { readonly node: NodeInfo }): JSX.Element {
  const { cpus, memoryMiB, memoryFreeMiB, diskBytes, diskFreeBytes } = node;
  const memoryUsed = memoryMiB - memoryFreeMiB;
  return (
    <>
      <dl class="facts">
        <dt>Memory</dt>
        <dd>
          <Bar
            label={`Memory in use on ${node.name}`}
            value={memoryUsed}
            max={memoryMiB}
            text={`${formatMiB(memoryUsed)} of ${formatMiB(memoryMiB)} in use`}
          />
        </dd>
        <dt>Disk</dt>
        <dd>
          {diskBytes === null ? (
            `${formatBytes(diskFreeBytes)} free`
          ) : (
            <Bar
              label={`Disk in use on ${node.name}`}
              value={diskBytes - diskFreeBytes}
              max={diskBytes}
              text={`${formatBytes(diskBytes - diskFreeBytes)} of ${formatBytes(diskBytes)} in use`}
            />
          )}
        </dd>
        <dt>Processors</dt>
        <dd>{formatNumber(cpus)}</dd>
        <dt>Instances</dt>
        <dd>
          {formatNumber(node.instances)}, {formatNumber(node.instancesRunning)} running
        </dd>
        <dt>Appliance</dt>
        <dd>
          <span class={node.appliance.state === 'intact' ? undefined : 'problem'}>
            {node.appliance.state}
          </span>
          , <Text>{node.appliance.detail}</Text>
        </dd>
        <dt>Version</dt>
        <dd>
          {node.version}, since {formatTime(node.startedAtMs)}
        </dd>
      </dl>
      {node.orphans.length > 0 && (
        <p class="problem">
          {formatNumber(node.orphans.length)} running without a record: gnt-instance adopt
        </p>
      )}
    </>
  );
}

const LEVELS = {
  ok: ['good', 'ok'],
  warning: ['warn', 'warning'],
  error: ['bad', 'error'],
} as const;

function Findings({ report }: { readonly report: Report }): JSX.Element {
  if ('silent' in report)
    return (
      <p class="problem">
        Not checked: <Text>{report.silent}</Text>
      </p>
    );
  const { findings } = report.report;
  const notable = findings.filter(({ level }) => level !== 'ok');
  return (
    <details open={notable.length > 0 || undefined}>
      <summary>
        Doctor: {formatNumber(findings.length)} checks,{' '}
        {notable.length === 0 ? 'no findings' : `${formatNumber(notable.length)} to look at`}
      </summary>
      <ul class="findings">
        {[...notable, ...findings.filter(({ level }) => level === 'ok')].map((finding) => (
          <li key={`${finding.check} ${finding.message}`}>
            <span class={`state ${LEVELS[finding.level][0]}`}>{LEVELS[finding.level][1]}</span>{' '}
            <Text>{finding.message}</Text>
            {finding.hint !== null && (
              <span class="soft">
                {' '}
                <Text>{finding.hint}</Text>
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
