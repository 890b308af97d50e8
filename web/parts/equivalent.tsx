import type { JSX } from 'preact';
import { commandOf, type KnownOpcode } from '../commands/command-of.ts';
import { commandLine } from './quote.ts';
import { CommandLine } from './command-line.tsx';

interface EquivalentProps {
  readonly opcode: KnownOpcode;
  /** The name that the user gave to the image, in place of its source. */
  readonly imageName?: string | undefined;
}

/** Shows the command that submits the same operation, and the files that it reads. */
export function Equivalent({ opcode, imageName }: EquivalentProps): JSX.Element {
  const { text, files, missing } = commandOf(withImageName(opcode, imageName));
  return (
    <section aria-label="Equivalent command">
      <CommandLine>{text}</CommandLine>
      {files.length > 0 && (
        <p class="help">
          The command reads these files, so that their content is not visible to other users:{' '}
          {files.map(({ name, holds }, index) => (
            <>
              {index > 0 && ', '}
              <code>{commandLine(name)}</code> ({holds})
            </>
          ))}
          .
        </p>
      )}
      {missing.length > 0 && <p class="help">Not in the command: {missing.join(', ')}.</p>}
    </section>
  );
}

/** A command looks up the checksum of a name itself. */
function withImageName(opcode: KnownOpcode, imageName: string | undefined): KnownOpcode {
  if (imageName === undefined) return opcode;
  if (opcode.opcode !== 'INSTANCE_CREATE' && opcode.opcode !== 'INSTANCE_REINSTALL') return opcode;
  const named = { ...opcode, osImage: imageName };
  delete named.osImageChecksum;
  return named;
}
