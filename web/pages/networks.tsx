import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../client/api-client.ts';
import { backgroundApi, mayWrite, seesCluster } from '../live/session.ts';
import { submit } from '../live/submit.ts';
import { useObjects } from '../live/use-objects.ts';
import { Bar } from '../parts/bar.tsx';
import { OperationButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Equivalent } from '../parts/equivalent.tsx';
import { Failure } from '../parts/failure.tsx';
import { TextField } from '../parts/field.tsx';
import { formatNumber } from '../parts/format.ts';
import { Names } from '../parts/list.tsx';
import { commandLine } from '../parts/quote.ts';
import { Text } from '../parts/text.tsx';
import { Page } from '../shell/page.tsx';

type Network = Schemas['NetworkInfo'];

export function NetworksPage(): JSX.Element {
  const networks = useObjects((signal) => backgroundApi.GET('/v1/networks', { signal }));
  const list = networks.value.value;
  const mayChange = mayWrite.value && seesCluster.value;
  return (
    <Page title="Networks">
      {networks.error.value !== undefined && <Failure error={networks.error.value} />}
      {list?.length === 0 && (
        <p class="panel soft">
          There is no network. Instances use NAT of their own, or a bridge of the node.
        </p>
      )}
      <div class="columns">
        {list?.map((network) => (
          <NetworkCard key={network.uuid} network={network} mayChange={mayChange} />
        ))}
      </div>
      <CommandLine>{commandLine('gnt-network', 'list')}</CommandLine>
      {mayChange && <AddNetwork />}
    </Page>
  );
}

interface NetworkCardProps {
  readonly network: Network;
  readonly mayChange: boolean;
}

function NetworkCard({ network, mayChange }: NetworkCardProps): JSX.Element {
  const { name, gateway, size, free, reserved, addresses, connections, tags } = network;
  const nodes = Object.entries(connections);
  return (
    <section class="panel" aria-label={`Network ${name}`}>
      <header class="title">
        <h2>
          <Text>{name}</Text>
        </h2>
        <span class="soft">{network.network}</span>
      </header>
      <dl class="facts">
        <dt>Addresses</dt>
        <dd>
          <Bar
            label={`Addresses in use in ${name}`}
            value={size - free}
            max={size}
            text={`${formatNumber(size - free)} of ${formatNumber(size)} in use`}
          />
        </dd>
        <dt>Gateway</dt>
        <dd>{gateway ?? <span class="soft">none</span>}</dd>
        <dt>Reserved</dt>
        <dd>
          <Names of={reserved} />
        </dd>
        <dt>Connected</dt>
        <dd>
          <Names
            none="to no node: instances cannot use it yet"
            of={nodes.map(([node, connection]) =>
              connection.mode === 'nat' ? `${node} by NAT` : `${node} at ${connection.link}`,
            )}
          />
        </dd>
        {tags.length > 0 && (
          <>
            <dt>Tags</dt>
            <dd>
              <Names of={tags} />
            </dd>
          </>
        )}
      </dl>
      {addresses.length > 0 && (
        <details>
          <summary>{formatNumber(addresses.length)} addresses of instances</summary>
          <ul>
            {addresses.map(({ ip, instance }) => (
              <li key={ip}>
                {ip} <Text>{instance}</Text>
              </li>
            ))}
          </ul>
        </details>
      )}
      {mayChange && (
        <div class="buttons">
          {nodes.length === 0 ? (
            <OperationButton
              of={name}
              opcode={{ opcode: 'NETWORK_CONNECT', name, connection: { mode: 'nat' } }}
            >
              Connect by NAT
            </OperationButton>
          ) : (
            <OperationButton
              of={name}
              opcode={{ opcode: 'NETWORK_DISCONNECT', name }}
              warning="Refused while a node has instances in the network."
            >
              Disconnect
            </OperationButton>
          )}
          <OperationButton
            of={name}
            opcode={{ opcode: 'NETWORK_REMOVE', name }}
            warning="Refused while nodes or instances use the network."
          >
            Remove
          </OperationButton>
        </div>
      )}
    </section>
  );
}

function AddNetwork(): JSX.Element {
  const form = useSignal({ name: '', network: '', gateway: '' });
  const refusal = useSignal<unknown>(undefined);
  const { name, network, gateway } = form.value;
  const change = (part: Partial<typeof form.value>): void => {
    form.value = { ...form.value, ...part };
  };
  const opcode = {
    opcode: 'NETWORK_ADD',
    name: name.trim(),
    network: network.trim(),
    ...(gateway.trim() !== '' && { gateway: gateway.trim() }),
  } as const;
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await submit(opcode);
      form.value = { name: '', network: '', gateway: '' };
      refusal.value = undefined;
    } catch (error) {
      refusal.value = error;
    }
  };
  return (
    <details class="panel">
      <summary>Add a network</summary>
      <form class="fields" onSubmit={(event) => void add(event)}>
        <div class="columns narrow">
          <TextField
            label="Name"
            value={name}
            isRequired
            placeholder="lan"
            onChange={(next) => change({ name: next })}
          />
          <TextField
            label="IPv4 network"
            value={network}
            isRequired
            placeholder="10.9.0.0/24"
            onChange={(next) => change({ network: next })}
          />
          <TextField
            label="Gateway"
            value={gateway}
            placeholder="10.9.0.1"
            help="NAT needs one: the address of the nodes."
            onChange={(next) => change({ gateway: next })}
          />
        </div>
        {refusal.value !== undefined && <Failure error={refusal.value} />}
        <div class="actions">
          <button type="submit" class="primary">
            Add
          </button>
        </div>
        <Equivalent
          opcode={{ ...opcode, name: opcode.name || 'NAME', network: opcode.network || 'NETWORK' }}
        />
      </form>
    </details>
  );
}
