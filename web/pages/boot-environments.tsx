import type { JSX } from 'preact';
import { backgroundApi, mayWrite, seesCluster } from '../live/session.ts';
import { useObjects } from '../live/use-objects.ts';
import { OperationButton } from '../parts/change-button.tsx';
import { CommandLine } from '../parts/command-line.tsx';
import { Failure } from '../parts/failure.tsx';
import { formatBytes } from '../parts/format.ts';
import { List, Names } from '../parts/list.tsx';
import { commandLine } from '../parts/quote.ts';
import { Text } from '../parts/text.tsx';
import { Page } from '../shell/page.tsx';

/** Shows the boot environments and the archives that this node has unpacked. */
export function BootEnvironmentsPage(): JSX.Element {
  const bootEnvs = useObjects((signal) => backgroundApi.GET('/v1/bootenvs', { signal }));
  const mayChange = mayWrite.value && seesCluster.value;
  return (
    <Page title="Boot environments">
      {bootEnvs.error.value !== undefined && <Failure error={bootEnvs.error.value} />}
      <List
        label="Boot environments"
        rows={bootEnvs.value.value}
        keyOf={({ name }) => name}
        empty="There is no boot environment. Add one: gnt-bootenv add FILE."
        columns={[
          {
            title: 'Name',
            cell: ({ name, description }) => (
              <>
                <Text>{name}</Text>
                {description !== '' && (
                  <span class="soft">
                    {' '}
                    <Text>{description}</Text>
                  </span>
                )}
              </>
            ),
          },
          { title: 'OS', cell: ({ osName }) => <Text>{osName}</Text> },
          { title: 'Archive', isWide: true, cell: ({ isoFile }) => <Text>{isoFile}</Text> },
          { title: 'Templates', isWide: true, cell: ({ templates }) => <Names of={templates} /> },
          { title: 'Instances', cell: ({ instances }) => <Names of={instances} /> },
          {
            title: 'Actions',
            cell: ({ name, isoUrl }) =>
              mayChange && (
                <div class="buttons">
                  {isoUrl !== '' && (
                    <OperationButton
                      of={name}
                      opcode={{ opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: name }}
                    >
                      Unpack the archive
                    </OperationButton>
                  )}
                  <OperationButton
                    of={name}
                    opcode={{ opcode: 'BOOTENV_REMOVE', object: { kind: 'bootEnv', name } }}
                    warning="Refused while an instance uses the boot environment."
                  >
                    Remove
                  </OperationButton>
                </div>
              ),
          },
        ]}
      />
      <CommandLine>{commandLine('gnt-bootenv', 'list')}</CommandLine>
      {seesCluster.value && <Archives />}
    </Page>
  );
}

function Archives(): JSX.Element {
  const archives = useObjects((signal) => backgroundApi.GET('/v1/boot-archives', { signal }));
  return (
    <section>
      <h2>Archives on this node</h2>
      {archives.error.value !== undefined && <Failure error={archives.error.value} />}
      <List
        label="Archives"
        rows={archives.value.value}
        keyOf={({ isoFile }) => isoFile}
        empty="This node has unpacked no archive."
        columns={[
          { title: 'File', cell: ({ isoFile }) => <Text>{isoFile}</Text> },
          { title: 'Size', cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
          { title: 'Used by', cell: ({ bootEnvs }) => <Names of={bootEnvs} /> },
          {
            title: 'Actions',
            cell: ({ isoFile }) =>
              mayWrite.value && (
                <OperationButton
                  of={isoFile}
                  opcode={{ opcode: 'BOOTENV_DESTROY_ISO', isoFile }}
                  warning="Refused while a boot environment names the archive."
                >
                  Remove
                </OperationButton>
              ),
          },
        ]}
      />
      <CommandLine>{commandLine('gnt-bootenv', 'list-isos')}</CommandLine>
    </section>
  );
}
