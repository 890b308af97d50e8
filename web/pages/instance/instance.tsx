import { computed } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Schemas } from '../../../client/api-client.ts';
import { instances } from '../../live/cluster.ts';
import { backgroundApi, mayWrite } from '../../live/session.ts';
import { useLoaded } from '../../live/use-loaded.ts';
import { Failure } from '../../parts/failure.tsx';
import { State, wordOfState } from '../../parts/state.tsx';
import { Text } from '../../parts/text.tsx';
import { Page } from '../../shell/page.tsx';
import { instancePath, Link } from '../../shell/router.tsx';
import { Actions } from './actions.tsx';
import { AuditSection } from './audit.tsx';
import { ConsoleSection } from './console.tsx';
import { InstallationSection } from './installation.tsx';
import { MetadataSection } from './metadata.tsx';
import { OverviewSection } from './overview.tsx';
import { ParametersSection } from './parameters.tsx';
import { SnapshotsSection } from './snapshots.tsx';

export type Info = Schemas['InstanceInfo'];
export interface SectionProps {
  readonly instance: Info;
}

/** The parts of the page by the end of its path. */
const SECTIONS: ReadonlyMap<
  string,
  {
    readonly title: string;
    readonly show: (props: SectionProps) => JSX.Element;
    readonly writes?: true;
  }
> = new Map([
  ['', { title: 'Overview', show: OverviewSection }],
  ['installation', { title: 'Installation', show: InstallationSection }],
  ['console', { title: 'Console', show: ConsoleSection, writes: true }],
  ['snapshots', { title: 'Snapshots', show: SnapshotsSection }],
  ['parameters', { title: 'OS parameters', show: ParametersSection }],
  ['metadata', { title: 'Metadata', show: MetadataSection }],
  ['audit', { title: 'Audit', show: AuditSection }],
]);

interface InstancePageProps {
  readonly name: string;
  readonly section: string;
}

export function InstancePage({ name, section }: InstancePageProps): JSX.Element {
  const version = useVersion(name);
  const { value, error } = useLoaded(
    async (signal) =>
      (await backgroundApi.GET('/v1/instances/{name}', { params: { path: { name } }, signal }))
        .data,
    [name, version],
  );
  const instance = value.value?.name === name ? value.value : undefined;
  const shown = SECTIONS.get(section) ?? SECTIONS.get('');
  const Section = shown?.show ?? OverviewSection;
  return (
    <Page
      title={name}
      actions={instance !== undefined && mayWrite.value && <Actions instance={instance} />}
    >
      {error.value !== undefined && <Failure error={error.value} />}
      {instance !== undefined && (
        <>
          <p>
            <State of={instance.status} />{' '}
            <span class="soft">
              <Text>{remedyOf(instance)}</Text>
            </span>
          </p>
          <nav class="tabs" aria-label="Parts of the instance">
            {[...SECTIONS].map(
              ([key, { title, writes }]) =>
                (writes === undefined || mayWrite.value) && (
                  <Link
                    key={key}
                    to={instancePath(name, key)}
                    aria-current={key === section ? 'page' : undefined}
                  >
                    {title}
                  </Link>
                ),
            )}
          </nav>
          <Section instance={instance} />
        </>
      )}
    </Page>
  );
}

/** Returns the explanation of the state, without the word that the page shows already. */
function remedyOf({ status, explanation }: Info): string {
  const word = wordOfState(status);
  if (explanation === word) return '';
  const said = [`${word}. `, `the ${word} `].find((start) => explanation.startsWith(start)) ?? '';
  return explanation.slice(said.length);
}

/** Changes whenever the record or the state of the instance changes. */
function useVersion(name: string): string {
  const version = useMemo(
    () =>
      computed(() => {
        const found = instances.items.value.find((each) => each.name === name);
        if (found === undefined) return 'gone';
        const { serialNo, modifiedAtMs, status, running } = found;
        return [serialNo, modifiedAtMs, status, running?.pid, running?.halt?.reason].join(' ');
      }),
    [name],
  );
  return version.value;
}
