import type { JSX } from 'preact';
import { CommandLine } from '../../parts/command-line.tsx';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import type { SectionProps } from './instance.tsx';

const MASK = '••••••';

/** Shows the OS parameters in force. Private values and secrets never reach the page. */
export function ParametersSection({ instance }: SectionProps): JSX.Element {
  const { name, osParametersEffective, secretNames, running } = instance;
  const lost = new Set(running?.lostSecrets ?? []);
  const shown = Object.entries(osParametersEffective).sort(([a], [b]) => (a < b ? -1 : 1));
  const secrets = secretNames.filter((secret) => !Object.hasOwn(osParametersEffective, secret));
  return (
    <>
      {shown.length + secrets.length === 0 ? (
        <p class="soft">The instance has no OS parameters.</p>
      ) : (
        <section class="panel">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Parameter</th>
                <th scope="col">Value</th>
                <th scope="col">Visibility</th>
                <th scope="col">Source</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(([key, { value, visibility, source }]) => (
                <tr key={key}>
                  <td>
                    <Text>{key}</Text>
                  </td>
                  <td>{visibility === 'public' ? <Text>{value}</Text> : MASK}</td>
                  <td>{visibility}</td>
                  <td>
                    <Text>{source}</Text>
                  </td>
                </tr>
              ))}
              {secrets.map((key) => (
                <tr key={key}>
                  <td>
                    <Text>{key}</Text>
                  </td>
                  <td>{lost.has(key) ? <span class="problem">lost: give it again</span> : MASK}</td>
                  <td>secret</td>
                  <td>given at the installation, in memory only</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      <CommandLine>{commandLine('gnt-instance', 'info', '--all', name)}</CommandLine>
    </>
  );
}
