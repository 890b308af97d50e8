import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { type Opcode, submitOrNotify } from '../../live/submit.ts';
import { ask } from '../../parts/ask.tsx';
import { instancePath, Link, navigate } from '../../shell/router.tsx';
import type { SectionProps } from './instance.tsx';

/** Buttons that start, stop, restart, reinstall or remove the instance. */
export function Actions({ instance: { name, status } }: SectionProps): JSX.Element {
  const isBusy = useSignal(false);
  const run = async (opcode: Opcode): Promise<number | undefined> => {
    isBusy.value = true;
    try {
      return await submitOrNotify(opcode);
    } finally {
      isBusy.value = false;
    }
  };
  const isUp = ['running', 'paused', 'ERROR_up'].includes(status);
  const stop = async (): Promise<void> => {
    const text = 'The guest is asked to shut down, and powered off after two minutes.';
    if (await ask({ title: `Stop ${name}?`, text, yes: 'Stop' }))
      await run({ opcode: 'INSTANCE_SHUTDOWN', name });
  };
  const remove = async (): Promise<void> => {
    const text = 'The instance, its disks and its snapshots are deleted.';
    if (!(await ask({ title: `Remove ${name}?`, text, yes: 'Remove', confirm: name }))) return;
    if ((await run({ opcode: 'INSTANCE_REMOVE', name })) !== undefined) navigate('/instances');
  };
  return (
    <>
      {isUp ? (
        <>
          <button type="button" disabled={isBusy} onClick={() => void stop()}>
            Stop
          </button>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void run({ opcode: 'INSTANCE_REBOOT', name })}
          >
            Restart
          </button>
        </>
      ) : (
        <button
          type="button"
          class="primary"
          disabled={isBusy.value || status === 'installing'}
          onClick={() => void run({ opcode: 'INSTANCE_STARTUP', name })}
        >
          Start
        </button>
      )}
      <Link to={instancePath(name, 'reinstall')} class="button">
        Reinstall
      </Link>
      <button type="button" class="danger" disabled={isBusy} onClick={() => void remove()}>
        Remove
      </button>
    </>
  );
}
