import type { ComponentChildren, JSX } from 'preact';
import type { Schemas } from '../../../client/api-client.ts';
import { useLines } from '../../live/use-stream.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import {
  formatBytes,
  formatDuration,
  formatMiB,
  formatNumber,
  formatTime,
} from '../../parts/format.ts';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import type { Info, SectionProps } from './instance.tsx';

type GuestProgress = Pick<Schemas['InstanceInfo'], 'boot' | 'lifecycle'> & {
  readonly readyAtMs: number | null;
};

export function OverviewSection({ instance }: SectionProps): JSX.Element {
  return (
    <>
      <div class="columns">
        <Machine instance={instance} />
        <Guest instance={instance} />
        <Origin instance={instance} />
      </div>
      <Disks instance={instance} />
      <Nics instance={instance} />
      <CommandLine>{commandLine('gnt-instance', 'info', instance.name)}</CommandLine>
    </>
  );
}

function Machine({ instance }: SectionProps): JSX.Element {
  const { beparams, primaryNode, running, diskTemplate, uuid, tags, autostart } = instance;
  return (
    <Facts title="Virtual machine">
      <Fact name="Node">{primaryNode}</Fact>
      <Fact name="vCPUs">{formatNumber(beparams.vcpus)}</Fact>
      <Fact name="Memory">{formatMiB(beparams.memoryMiB)}</Fact>
      <Fact name="Disk template">{diskTemplate}</Fact>
      <Fact name="Running">
        {running === null
          ? 'no'
          : `since ${formatTime(running.startedAtMs)}, process ${running.pid}, ${running.accelerator}`}
      </Fact>
      {running?.halt && <Fact name="Paused because">{running.halt.reason}</Fact>}
      <Fact name="Autostart">
        {autostart.boot ? `yes, priority ${formatNumber(autostart.priority)}` : 'no'}
      </Fact>
      <Fact name="UUID">
        <code>{uuid}</code>
      </Fact>
      <Fact name="Tags">{tags.length === 0 ? 'none' : <Tags tags={tags} />}</Fact>
    </Facts>
  );
}

function Tags({ tags }: { readonly tags: readonly string[] }): JSX.Element {
  return (
    <ul class="tags">
      {tags.map((tag) => (
        <li key={tag}>
          <Text>{tag}</Text>
        </li>
      ))}
    </ul>
  );
}

/** Shows the guest's own reports, as they arrive. */
function Guest({ instance }: SectionProps): JSX.Element {
  const { name, running, ssh, channel, communication } = instance;
  const { value } = useLines<GuestProgress, GuestProgress | null>(
    running === null ? null : `/v1/instances/${encodeURIComponent(name)}/boot`,
    null,
    (_, line) => line,
  );
  const reported = value.value;
  const { boot, lifecycle } = reported ?? instance;
  const readyAtMs = reported?.readyAtMs ?? running?.readyAtMs ?? null;
  return (
    <Facts title="Guest">
      <Fact name="Ready">{describeReady(running, readyAtMs)}</Fact>
      <Boot report={boot} />
      {lifecycle && <Fact name="Run lists">{lifecycle.state}</Fact>}
      <Fact name="Login user">{ssh.user === null ? 'unknown' : <Text>{ssh.user}</Text>}</Fact>
      <Fact name="Channel">{communication ? channel.ip : 'off'}</Fact>
    </Facts>
  );
}

function describeReady(running: Info['running'], readyAtMs: number | null): string {
  if (running === null) return 'the instance does not run';
  if (readyAtMs === null) return 'not reported yet';
  return `${formatDuration(readyAtMs - running.startedAtMs)} after the start`;
}

function Boot({ report }: { readonly report: Info['boot'] }): JSX.Element {
  if (report === null) return <Fact name="cloud-init">no report</Fact>;
  const { status, stages, errors, recoverableErrors } = report;
  const problems = [...errors, ...recoverableErrors];
  return (
    <>
      <Fact name="cloud-init">{status}</Fact>
      {stages.length > 0 && (
        <Fact name="Boot stages">
          {stages.map(({ name, seconds }) => `${name} ${formatNumber(seconds)} s`).join(', ')}
        </Fact>
      )}
      {problems.length > 0 && (
        <Fact name="Problems">
          {problems.map((problem) => (
            <p key={problem} class="problem">
              <Text>{problem}</Text>
            </p>
          ))}
        </Fact>
      )}
    </>
  );
}

function Origin({ instance }: SectionProps): JSX.Element {
  const { osType, osImage, personalizationPackage, profiles, bootEnv, createdAtMs, dialects } =
    instance;
  return (
    <Facts title="Content">
      <Fact name="OS definition">{osType === null ? 'none' : <Text>{osType}</Text>}</Fact>
      <Fact name="Image">{osImage === null ? 'none' : <Text>{osImage}</Text>}</Fact>
      {personalizationPackage !== null && (
        <Fact name="Package">
          <Text>{personalizationPackage}</Text>
        </Fact>
      )}
      <Fact name="Profiles">{profiles.length === 0 ? 'none' : profiles.join(', ')}</Fact>
      {bootEnv !== null && <Fact name="Boot environment">{bootEnv}</Fact>}
      <Fact name="Dialects">{dialects.join(', ')}</Fact>
      <Fact name="Created">{formatTime(createdAtMs)}</Fact>
    </Facts>
  );
}

function Disks({ instance: { disks } }: SectionProps): JSX.Element {
  return (
    <section class="panel">
      <h2>Disks</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Number</th>
            <th scope="col">Name</th>
            <th scope="col" class="number">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {disks.map(({ uuid, name, sizeBytes }, index) => (
            <tr key={uuid}>
              <td>{index}</td>
              <td>{name ?? ''}</td>
              <td class="number">{formatBytes(sizeBytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Nics({ instance: { nics, communication } }: SectionProps): JSX.Element {
  return (
    <section class="panel">
      <h2>NICs</h2>
      {nics.length === 0 ? (
        <p class="soft">None{communication && ' besides the channel to the node'}.</p>
      ) : (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Number</th>
              <th scope="col">Network</th>
              <th scope="col">Address</th>
              <th scope="col">MAC</th>
            </tr>
          </thead>
          <tbody>
            {nics.map(({ uuid, mac, mode, link, ip, networkName }, index) => (
              <tr key={uuid}>
                <td>{index}</td>
                <td>{networkName ?? link ?? mode}</td>
                <td>{ip ?? 'by DHCP'}</td>
                <td>
                  <code>{mac}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function Facts({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class="panel">
      <h2>{title}</h2>
      <dl class="facts">{children}</dl>
    </section>
  );
}

export function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
