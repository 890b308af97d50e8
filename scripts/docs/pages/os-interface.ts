import { GANETI_OS_PATHS } from '#shared/paths/root-paths.ts';
import type { OsScriptName } from '../../../noded/provision/os/os-definition.ts';
import {
  bullets,
  code,
  heading,
  paragraph,
  table,
  terms,
} from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

/** A script without a row does not compile. */
const SCRIPTS: Readonly<Record<OsScriptName, readonly [place: string, text: string]>> = {
  create: ['host, appliance', '`add`, `reinstall`'],
  verify: ['host, appliance', '`add`, `reinstall`, `modify`'],
  rename: ['appliance, else host', '`rename`'],
  export: ['appliance, else host', '`gnt-backup export`'],
  import: ['appliance, else host', '`gnt-backup import`'],
};

export function osInterfacePage(): DocumentedPage {
  return documented('os-interface.md', 'OS definition interface', {
    name: 'gnt-os-interface',
    section: 7,
    purpose: 'format of OS definitions',
    blocks: [
      heading('Description'),
      paragraph(
        `An OS definition is a folder below ${GANETI_OS_PATHS.map((path) => `\`/${path}\``).join(', ')} in ` +
          'the format of Ganeti, with API version 20, 15 or 10. Its name is the name of the folder. ' +
          'Definitions of Ganeti work unchanged.',
      ),
      heading('Files'),
      terms([
        ['ganeti_api_version', 'Required. API versions of the definition, one per line.'],
        ['variants.list', 'Names of variants, one per line. API version 15 or later.'],
        [
          'parameters.list',
          'Required for API version 20. A parameter and its description per line.',
        ],
        ['untrusted/SCRIPT', 'Scripts that run in the appliance as root.'],
        ['create_untrusted', 'The same as `untrusted/create`.'],
        ['SCRIPT', 'Scripts that run on the host as root, once the definition is trusted.'],
        ['hooks/*.yaml', 'Hook documents. See `gnt-hooks(5)`.'],
        ['run-lists/LIST/', 'Run lists: `boot`, `operational`, `decommission`.'],
      ]),
      paragraph(
        'A definition without `untrusted/create` needs all scripts at the top, and `verify` for API ' +
          'version 20.',
      ),
      heading('Scripts'),
      table(
        ['Script', 'Runs on', 'Command'],
        Object.entries(SCRIPTS).map(([name, [place, text]]) => [`\`${name}\``, place, text]),
      ),
      bullets([
        '`create` installs the instance. If both scripts exist, they run in parallel.',
        '`verify` gets the argument `parameters`. If it fails, the operation is refused.',
        '`rename` gets OLD_INSTANCE_NAME. If it fails, the job warns and the new name stays.',
        '`export` prints the dump of one disk. It runs once per disk.',
        '`import` reads the dump of one disk. It runs once per disk, instead of `create`.',
      ]),
      paragraph('`gnt-script-environment(7)` lists the environment variables.'),
      heading('Trust'),
      paragraph(
        'Scripts at the top run on the host only after `gnt-os trust NAME`. Trust belongs to the ' +
          'content: every name, mode and byte of the folder. A changed definition is not trusted. ' +
          '`gnt-cluster modify --host-scripts no` disables scripts on the host.',
      ),
      paragraph(
        '`gnt-os modify --safe-install required NAME` runs all scripts of a definition in the appliance.',
      ),
      heading('Example'),
      code(
        [
          '/srv/ganeti/os/site/',
          '  ganeti_api_version    20',
          '  parameters.list       greeting A sentence for the message of the day',
          '  untrusted/create      #!/bin/sh ...',
        ].join('\n'),
      ),
    ],
    seeAlso: ['gnt-os(8)', 'gnt-script-environment(7)', 'gnt-hooks(5)'],
  });
}
