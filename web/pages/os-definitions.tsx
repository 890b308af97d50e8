import type { JSX } from 'preact';
import type { Schemas } from '../../client/api-client.ts';
import { backgroundApi, isRoot } from '../live/session.ts';
import { useObjects } from '../live/use-objects.ts';
import { OperationButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Failure } from '../parts/failure.tsx';
import { Names } from '../parts/list.tsx';
import { commandLine } from '../parts/quote.ts';
import { Text } from '../parts/text.tsx';
import { Page } from '../shell/page.tsx';

type Os = Schemas['OsInfo'];

const TRUST: Readonly<Record<Os['trust']['state'], string>> = {
  trusted: 'trusted',
  untrusted: 'not trusted: its scripts run in the appliance only',
  changed: 'changed since it was trusted',
  'by-name': 'trusted by its name only, which is not enough',
};
const MASK = '••••••';

/** Shows the OS definitions of this node. */
export function OsPage(): JSX.Element {
  const definitions = useObjects((signal) => backgroundApi.GET('/v1/os', { signal }));
  const list = definitions.value.value;
  return (
    <Page title="OS definitions">
      {definitions.error.value !== undefined && <Failure error={definitions.error.value} />}
      {list?.length === 0 && (
        <p class="panel soft">This node has no OS definition. Images install without one.</p>
      )}
      <div class="columns">
        {list?.map((os) => (
          <OsCard key={os.name} os={os} />
        ))}
      </div>
      <CommandLine>{commandLine('gnt-os', 'info')}</CommandLine>
    </Page>
  );
}

function OsCard({ os }: { readonly os: Os }): JSX.Element {
  const { name, valid, problem, variants, parameters, trust, hidden, blacklisted, defaults } = os;
  return (
    <section class="panel" aria-label={`OS definition ${name}`}>
      <header class="title">
        <h2>
          <Text>{name}</Text>
        </h2>
        {!valid && <span class="state bad">invalid</span>}
        {hidden && <span class="state idle">hidden</span>}
        {blacklisted && <span class="state warn">blacklisted</span>}
      </header>
      {problem !== null && (
        <p class="problem">
          <Text>{problem}</Text>
        </p>
      )}
      <dl class="facts">
        <dt>Variants</dt>
        <dd>
          <Names of={variants} />
        </dd>
        <dt>Content</dt>
        <dd>{TRUST[trust.state]}</dd>
        <dt>Scripts</dt>
        <dd>
          <Names of={os.applianceScripts} none="none in the appliance" />
          {os.hostScripts.length > 0 && (
            <>
              ; on the node: <Names of={os.hostScripts} />
            </>
          )}
        </dd>
      </dl>
      {parameters.length > 0 && (
        <details>
          <summary>Parameters: {parameters.length}</summary>
          <dl class="facts">
            {parameters.map((parameter) => (
              <Parameter key={parameter.name} {...parameter} value={defaults[parameter.name]} />
            ))}
          </dl>
        </details>
      )}
      {isRoot && (
        <div class="buttons">
          {trust.state === 'trusted' ? (
            <OperationButton of={name} opcode={{ opcode: 'OS_SET_PARAMS', name, trusted: false }}>
              Stop trusting
            </OperationButton>
          ) : (
            <OperationButton
              of={name}
              opcode={{ opcode: 'OS_SET_PARAMS', name, trusted: true }}
              warning="Its scripts may then run as root on the nodes. Read them first."
            >
              Trust
            </OperationButton>
          )}
          <OperationButton of={name} opcode={{ opcode: 'OS_SET_PARAMS', name, hidden: !hidden }}>
            {hidden ? 'Show in lists' : 'Hide in lists'}
          </OperationButton>
          <OperationButton
            of={name}
            opcode={{ opcode: 'OS_SET_PARAMS', name, blacklisted: !blacklisted }}
          >
            {blacklisted ? 'Allow' : 'Blacklist'}
          </OperationButton>
        </div>
      )}
    </section>
  );
}

interface ParameterProps {
  readonly name: string;
  readonly description: string;
  readonly value: Os['defaults'][string] | undefined;
}

function Parameter({ name, description, value }: ParameterProps): JSX.Element {
  return (
    <>
      <dt>
        <Text>{name}</Text>
      </dt>
      <dd>
        <Text>{description}</Text>
        {value !== undefined && (
          <span class="soft">
            {' '}
            default <Text>{value.visibility === 'public' ? value.value : MASK}</Text>
          </span>
        )}
      </dd>
    </>
  );
}
