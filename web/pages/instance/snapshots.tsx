import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { mayWrite } from '../../live/session.ts';
import { submitOrNotify } from '../../live/submit.ts';
import { ask } from '../../parts/ask.tsx';
import { CommandLine } from '../../parts/command-line.tsx';
import { formatTime } from '../../parts/format.ts';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import type { SectionProps } from './instance.tsx';

export function SnapshotsSection({
  instance: { name, snapshots, running },
}: SectionProps): JSX.Element {
  const label = useSignal('');
  const restore = async (snapshot: string): Promise<void> => {
    const text = 'The disks return to the snapshot. Later writes are lost.';
    if (await ask({ title: `Restore ${snapshot}?`, text, yes: 'Restore' }))
      await submitOrNotify({ opcode: 'INSTANCE_RESTORE', name, snapshot });
  };
  const remove = async (snapshot: string): Promise<void> => {
    const text = 'The disks stay as they are. The snapshot cannot be restored afterwards.';
    if (await ask({ title: `Remove ${snapshot}?`, text, yes: 'Remove' }))
      await submitOrNotify({ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name, snapshot });
  };
  const take = async (event: Event): Promise<void> => {
    event.preventDefault();
    const snapshot = label.value.trim();
    if (snapshot === '') return;
    const job = await submitOrNotify({ opcode: 'INSTANCE_SNAPSHOT', name, snapshot });
    if (job !== undefined) label.value = '';
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
              {snapshots.map(({ uuid, name: snapshot, takenAtMs, wasRunning }) => (
                <tr key={uuid}>
                  <td>
                    <Text>{snapshot}</Text>
                  </td>
                  <td>{formatTime(takenAtMs)}</td>
                  <td>{wasRunning ? 'was running: as after a power cut' : 'was stopped'}</td>
                  <td class="actions">
                    {mayWrite.value && (
                      <>
                        <button
                          type="button"
                          disabled={running !== null}
                          title={running === null ? undefined : 'Stop the instance first'}
                          onClick={() => void restore(snapshot)}
                        >
                          Restore
                        </button>
                        <button type="button" onClick={() => void remove(snapshot)}>
                          Remove
                        </button>
                      </>
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
        </form>
      )}
      <CommandLine>
        {label.value.trim() === ''
          ? commandLine('gnt-instance', 'list-snapshots', name)
          : commandLine('gnt-instance', 'snapshot', name, label.value.trim())}
      </CommandLine>
    </>
  );
}
