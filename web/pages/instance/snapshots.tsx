import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { commandOf } from '../../commands/command-of.ts';
import { mayWrite } from '../../live/session.ts';
import { submit } from '../../live/submit.ts';
import { OperationButton } from '../../parts/change-button.tsx';
import { CommandLine } from '../../parts/command-line.tsx';
import { CheckField } from '../../parts/field.tsx';
import { messageOf } from '../../parts/failure.tsx';
import { formatTime } from '../../parts/format.ts';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import { notify } from '../../shell/notices.tsx';
import type { SectionProps } from './instance.tsx';

export function SnapshotsSection({
  instance: { name, snapshots, running },
}: SectionProps): JSX.Element {
  const label = useSignal('');
  const isCopy = useSignal(false);
  const snapshot = label.value.trim();
  const opcode = {
    opcode: 'INSTANCE_SNAPSHOT',
    name,
    snapshot,
    ...(isCopy.value && { copy: true }),
  } as const;
  const take = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (snapshot === '') return;
    try {
      await submit(opcode);
      label.value = '';
    } catch (error) {
      notify('bad', messageOf(error));
    }
  };
  return (
    <>
      {snapshots.length === 0 ? (
        <p class="soft">The instance has no snapshots.</p>
      ) : (
        <section class="panel">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Taken</th>
                <th scope="col">Guest</th>
                <th scope="col">
                  <span class="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {snapshots.map(({ uuid, name: taken, takenAtMs, wasRunning }) => (
                <tr key={uuid}>
                  <td>
                    <Text>{taken}</Text>
                  </td>
                  <td>{formatTime(takenAtMs)}</td>
                  <td>{wasRunning ? 'was running: as after a power cut' : 'was stopped'}</td>
                  <td class="actions">
                    {mayWrite.value && (
                      <div class="buttons">
                        <OperationButton
                          of={taken}
                          opcode={{ opcode: 'INSTANCE_RESTORE', name, snapshot: taken }}
                          warning="The disks return to the snapshot. Later writes are lost."
                          blocked={running === null ? undefined : 'Stop the instance first'}
                        >
                          Restore
                        </OperationButton>
                        <OperationButton
                          of={taken}
                          opcode={{ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name, snapshot: taken }}
                          warning="The disks stay as they are. The snapshot cannot be restored afterwards."
                        >
                          Remove
                        </OperationButton>
                      </div>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {mayWrite.value && (
        <form class="filters" onSubmit={(event) => void take(event)}>
          <input
            aria-label="Name of the new snapshot"
            placeholder="Name of the new snapshot"
            value={label}
            required
            onInput={(event) => {
              label.value = event.currentTarget.value;
            }}
          />
          <button type="submit">Take a snapshot</button>
          <CheckField
            label="Copy the disks: for file systems that cannot share blocks"
            isChecked={isCopy.value}
            onChange={(isChecked) => {
              isCopy.value = isChecked;
            }}
          />
        </form>
      )}
      <CommandLine>
        {snapshot === ''
          ? commandLine('gnt-instance', 'list-snapshots', name)
          : commandOf(opcode).text}
      </CommandLine>
    </>
  );
}
