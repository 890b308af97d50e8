import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { backgroundApi, mayWrite, seesCluster } from '../live/session.ts';
import { submit } from '../live/submit.ts';
import { useObjects } from '../live/use-objects.ts';
import { OperationButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Equivalent } from '../parts/equivalent.tsx';
import { Failure } from '../parts/failure.tsx';
import { SelectField, TextField } from '../parts/field.tsx';
import { List, Names } from '../parts/list.tsx';
import { commandLine } from '../parts/quote.ts';
import { Text } from '../parts/text.tsx';
import { Page } from '../shell/page.tsx';

const MASK = '••••••';

/** Shows the sets of OS parameters that instances share. */
export function ProfilesPage(): JSX.Element {
  const profiles = useObjects((signal) => backgroundApi.GET('/v1/profiles', { signal }));
  const mayChange = mayWrite.value && seesCluster.value;
  return (
    <Page title="Profiles">
      {profiles.error.value !== undefined && <Failure error={profiles.error.value} />}
      <List
        label="Profiles"
        rows={profiles.value.value}
        keyOf={({ name }) => name}
        empty="There is no profile. A profile is a set of OS parameters that instances share."
        columns={[
          { title: 'Name', cell: ({ name }) => <Text>{name}</Text> },
          {
            title: 'OS parameters',
            cell: ({ osParameters, osParametersPrivate }) => (
              <ul class="values">
                {Object.entries(osParameters).map(([key, value]) => (
                  <li key={key}>
                    <Text>{`${key} = ${value}`}</Text>
                  </li>
                ))}
                {Object.keys(osParametersPrivate).map((key) => (
                  <li key={key}>
                    <Text>{`${key} = ${MASK}`}</Text> <span class="soft">private</span>
                  </li>
                ))}
              </ul>
            ),
          },
          { title: 'Instances', isWide: true, cell: ({ instances }) => <Names of={instances} /> },
          {
            title: 'Actions',
            cell: ({ name }) =>
              mayChange && (
                <OperationButton
                  of={name}
                  opcode={{ opcode: 'PROFILE_REMOVE', name }}
                  warning="Refused while an instance uses the profile."
                >
                  Remove
                </OperationButton>
              ),
          },
        ]}
      />
      <CommandLine>{commandLine('gnt-profile', 'info')}</CommandLine>
      {mayChange && <SetParameter names={profiles.value.value?.map(({ name }) => name) ?? []} />}
    </Page>
  );
}

const EMPTY = { name: '', key: '', value: '', visibility: 'public' } as const;
interface Form {
  readonly name: string;
  readonly key: string;
  readonly value: string;
  readonly visibility: 'public' | 'private';
}

function SetParameter({ names }: { readonly names: readonly string[] }): JSX.Element {
  const form = useSignal<Form>(EMPTY);
  const refusal = useSignal<unknown>(undefined);
  const { name, key, value, visibility } = form.value;
  const change = (part: Partial<Form>): void => {
    form.value = { ...form.value, ...part };
  };
  const list = key.trim() === '' ? {} : { [key.trim()]: value };
  const opcode = {
    opcode: 'PROFILE_SET_PARAMS',
    name: name.trim(),
    ...(visibility === 'public' ? { osParameters: list } : { osParametersPrivate: list }),
  } as const;
  const set = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await submit(opcode);
      form.value = { ...EMPTY, name };
      refusal.value = undefined;
    } catch (error) {
      refusal.value = error;
    }
  };
  return (
    <details class="panel">
      <summary>Set a parameter</summary>
      <form class="fields" onSubmit={(event) => void set(event)}>
        <div class="columns narrow">
          <TextField
            label="Profile"
            value={name}
            list={names}
            isRequired
            help="It is created if it does not exist."
            onChange={(next) => change({ name: next })}
          />
          <TextField
            label="Parameter"
            value={key}
            isRequired
            onChange={(next) => change({ key: next })}
          />
          <TextField label="Value" value={value} onChange={(next) => change({ value: next })} />
          <SelectField
            label="Visibility"
            value={visibility}
            options={[
              ['public', 'public'],
              ['private', 'private: never shown'],
            ]}
            onChange={(next) => change({ visibility: next })}
          />
        </div>
        {refusal.value !== undefined && <Failure error={refusal.value} />}
        <div class="actions">
          <button type="submit" class="primary">
            Set
          </button>
        </div>
        <Equivalent opcode={{ ...opcode, name: opcode.name || 'NAME' }} />
      </form>
    </details>
  );
}
