import type { ComponentChildren, JSX, TargetedInputEvent } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Text } from '../../parts/text.tsx';
import {
  BLANK_NIC,
  type DiskRow,
  type HookRow,
  type NicRow,
  type ParameterRow,
  type Visibility,
} from './install-form.ts';

interface RowsProps<Row> {
  readonly legend: string;
  readonly help: ComponentChildren;
  readonly fault: string | undefined;
  readonly rows: readonly Row[];
  readonly onChange: (rows: readonly Row[]) => void;
  /** A new row. */
  readonly blank: Row;
  /** Words of the button, such as `Add a parameter`. */
  readonly add: string;
  readonly render: (row: Row, change: (part: Partial<Row>) => void, index: number) => JSX.Element;
}

/** Edits a list of rows. */
function Rows<Row>(props: RowsProps<Row>): JSX.Element {
  const { legend, help, fault, rows, onChange, blank, add, render } = props;
  const id = useId();
  const place = useRef<HTMLFieldSetElement>(null);
  const count = useRef(rows.length);
  useEffect(() => {
    // The keyboard continues in the new row.
    if (rows.length > count.current)
      [...(place.current?.querySelectorAll('.row') ?? [])]
        .at(-1)
        ?.querySelector<HTMLElement>('input, select')
        ?.focus();
    count.current = rows.length;
  }, [rows.length]);
  const change = (index: number, part: Partial<Row>): void =>
    onChange(rows.map((row, at) => (at === index ? { ...row, ...part } : row)));
  return (
    <fieldset class="rows" ref={place} aria-describedby={`${id}-help`}>
      <legend>{legend}</legend>
      <p class="help" id={`${id}-help`}>
        {help}
      </p>
      {rows.map((row, index) => (
        <div class="row" key={index}>
          {render(row, (part) => change(index, part), index)}
          <button
            type="button"
            class="quiet"
            aria-label={`Remove row ${index + 1} of ${legend}`}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
          >
            Remove
          </button>
        </div>
      ))}
      {fault && (
        <p class="problem" role="alert">
          <Text>{fault}</Text>
        </p>
      )}
      <div>
        <button type="button" onClick={() => onChange([...rows, blank])}>
          {add}
        </button>
      </div>
    </fieldset>
  );
}

interface EditorProps<Row> {
  readonly rows: readonly Row[];
  readonly fault: string | undefined;
  readonly onChange: (rows: readonly Row[]) => void;
}

interface ParametersProps extends EditorProps<ParameterRow> {
  /** Parameters that the OS definition declares. */
  readonly declared: readonly { readonly name: string; readonly description: string }[];
}

/** Edits OS parameters of all visibilities. */
export function ParametersEditor({ declared, ...editor }: ParametersProps): JSX.Element {
  const listId = useId();
  const described = new Map(declared.map(({ name, description }) => [name, description]));
  return (
    <>
      <datalist id={listId}>
        {declared.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Rows
        {...editor}
        legend="OS parameters"
        help="Public values are shown to everyone. Private values are stored and never shown. Secrets are kept in memory only: give them again to reinstall."
        blank={{ name: '', value: '', visibility: 'public' }}
        add="Add a parameter"
        render={({ name, value, visibility }, change, index) => (
          <>
            <input
              aria-label={`Name of parameter ${index + 1}`}
              placeholder="name"
              list={listId}
              value={name}
              title={described.get(name)}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => change({ name: event.currentTarget.value })}
            />
            <ValueInput
              label={`Value of parameter ${index + 1}`}
              isHidden={visibility !== 'public'}
              value={value}
              onChange={(next) => change({ value: next })}
            />
            <select
              aria-label={`Visibility of parameter ${index + 1}`}
              value={visibility}
              // The options below are the visibilities.
              onChange={(event) => change({ visibility: event.currentTarget.value as Visibility })}
            >
              <option value="public">public</option>
              <option value="private">private</option>
              <option value="secret">secret</option>
            </select>
          </>
        )}
      />
    </>
  );
}

interface ValueInputProps {
  readonly label: string;
  readonly isHidden: boolean;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function ValueInput({ label, isHidden, value, onChange }: ValueInputProps): JSX.Element {
  const common = {
    'aria-label': label,
    placeholder: 'value',
    value,
    onInput: (event: TargetedInputEvent<HTMLInputElement>) => onChange(event.currentTarget.value),
  };
  if (isHidden) return <input {...common} type="password" autocomplete="new-password" />;
  return <input {...common} autocomplete="off" spellcheck={false} />;
}

/** Edits the disks after the first one. */
export function DisksEditor(editor: EditorProps<DiskRow>): JSX.Element {
  return (
    <Rows
      {...editor}
      legend="More disks"
      help="The first disk gets the operating system. These are empty."
      blank={{ size: '' }}
      add="Add a disk"
      render={({ size }, change, index) => (
        <input
          aria-label={`Size of disk ${index + 1}`}
          placeholder="20G"
          value={size}
          autocomplete="off"
          onInput={(event) => change({ size: event.currentTarget.value })}
        />
      )}
    />
  );
}

interface NicsProps extends EditorProps<NicRow> {
  readonly networks: readonly string[];
}

/** Edits the NICs of a new instance. */
export function NicsEditor({ networks, ...editor }: NicsProps): JSX.Element {
  return (
    <Rows
      {...editor}
      legend="Network interfaces"
      help="NAT reaches the internet without any set-up, and cannot be reached from outside. The channel to the node needs no interface."
      blank={BLANK_NIC}
      add="Add an interface"
      render={({ kind, to, ip, gateway, dns }, change, index) => (
        <>
          <select
            aria-label={`Kind of interface ${index + 1}`}
            value={kind}
            onChange={(event) =>
              // The options below are the kinds.
              change({ ...BLANK_NIC, kind: event.currentTarget.value as NicRow['kind'] })
            }
          >
            <option value="user">NAT</option>
            <option value="network">Network of the cluster</option>
            <option value="bridge">Bridge of the node</option>
          </select>
          {kind === 'network' && (
            <>
              <select
                aria-label={`Network of interface ${index + 1}`}
                value={to}
                onChange={(event) => change({ to: event.currentTarget.value })}
              >
                <option value="">Choose a network</option>
                {networks.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
              <input
                aria-label={`Address of interface ${index + 1}`}
                placeholder="any free address"
                value={ip}
                onInput={(event) => change({ ip: event.currentTarget.value })}
              />
            </>
          )}
          {kind === 'bridge' && (
            <>
              <input
                aria-label={`Bridge of interface ${index + 1}`}
                placeholder="br0"
                value={to}
                onInput={(event) => change({ to: event.currentTarget.value })}
              />
              <input
                aria-label={`Addresses of interface ${index + 1}`}
                placeholder="address by DHCP, or 192.0.2.5/24"
                value={ip}
                onInput={(event) => change({ ip: event.currentTarget.value })}
              />
              {ip.trim() !== '' && (
                <>
                  <input
                    aria-label={`Gateways of interface ${index + 1}`}
                    placeholder="gateway"
                    value={gateway}
                    onInput={(event) => change({ gateway: event.currentTarget.value })}
                  />
                  <input
                    aria-label={`Name servers of interface ${index + 1}`}
                    placeholder="name servers"
                    value={dns}
                    onInput={(event) => change({ dns: event.currentTarget.value })}
                  />
                </>
              )}
            </>
          )}
        </>
      )}
    />
  );
}

interface HooksProps extends EditorProps<HookRow> {
  /** Steps that the node found in all hooks of the installation. */
  readonly steps: readonly string[];
}

/** Edits the hook documents of an instance. */
export function HooksEditor({ steps, ...editor }: HooksProps): JSX.Element {
  return (
    <>
      <Rows
        {...editor}
        legend="Hooks"
        help="YAML documents with steps that run during the installation, in the appliance."
        blank={{ name: 'hooks.yaml', text: '' }}
        add="Add a document"
        render={({ name, text }, change, index) => (
          <div class="document">
            <input
              aria-label={`File name of document ${index + 1}`}
              value={name}
              onInput={(event) => change({ name: event.currentTarget.value })}
            />
            <textarea
              aria-label={`Content of document ${index + 1}`}
              class="mono"
              rows={6}
              value={text}
              spellcheck={false}
              onInput={(event) => change({ text: event.currentTarget.value })}
            />
          </div>
        )}
      />
      {steps.length > 0 && (
        <div>
          <p class="help">The installation runs these steps:</p>
          <ul>
            {steps.map((step) => (
              <li key={step}>
                <Text>{step}</Text>
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}
