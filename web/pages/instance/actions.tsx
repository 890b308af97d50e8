import type { JSX } from 'preact';
import { OperationButton } from '../../parts/change-button.tsx';
import { instancePath, Link, navigate } from '../../shell/router.tsx';
import type { SectionProps } from './instance.tsx';

const UP: ReadonlySet<string> = new Set(['running', 'paused', 'ERROR_up']);
const SHUTDOWN = 'The guest is asked to shut down, and powered off after two minutes.';

/** Buttons that start, stop, restart, reinstall or remove the instance. */
export function Actions({ instance: { name, status, install } }: SectionProps): JSX.Element {
  const isInstalled = install?.state !== 'failed';
  return (
    <>
      {UP.has(status) ? (
        <>
          <OperationButton
            of={name}
            opcode={{ opcode: 'INSTANCE_SHUTDOWN', name }}
            warning={SHUTDOWN}
            look={null}
          >
            Stop
          </OperationButton>
          <OperationButton
            of={name}
            opcode={{ opcode: 'INSTANCE_REBOOT', name }}
            warning={`${SHUTDOWN} Then it starts again.`}
            look={null}
          >
            Restart
          </OperationButton>
        </>
      ) : (
        <OperationButton
          of={name}
          opcode={{ opcode: 'INSTANCE_STARTUP', name }}
          look={isInstalled ? 'primary' : null}
          blocked={status === 'installing' ? 'The installation runs' : undefined}
        >
          Start
        </OperationButton>
      )}
      <Link to={instancePath(name, 'reinstall')} class="button">
        Reinstall
      </Link>
      <OperationButton
        of={name}
        opcode={{ opcode: 'INSTANCE_REMOVE', name }}
        warning="The instance, its disks and its snapshots are deleted."
        confirm={name}
        onAccepted={() => navigate('/instances')}
      >
        Remove
      </OperationButton>
    </>
  );
}
