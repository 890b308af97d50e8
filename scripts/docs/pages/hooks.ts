import { hookPoint, type HookPoint } from '#shared/contract/primitives.ts';
import { MAX_HOOK_DOCUMENTS, MAX_HOOKS_BYTES } from '#shared/contract/hooks.ts';
import { MIB } from '#shared/units/bytes.ts';
import {
  instanceFields,
  refusedFields,
  type StepFields,
} from '../../../appliance/agent/hooks/fields.ts';
import { bullets, code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

/** A stage without a row does not compile. */
const STAGES: Readonly<Record<HookPoint, string>> = {
  'install.pre': 'Before anything else.',
  'before-install': 'Before the image is written.',
  'before-reset': 'The same, in reinstallations only.',
  image: 'After the image is written.',
  'os-scripts': 'After the scripts of the OS definition.',
  'after-install-chroot': 'Inside the mounted instance.',
  'after-reset-chroot': 'The same, in reinstallations only.',
  personalize: 'After the personalization package is unpacked.',
  'after-install': 'Outside the mounted instance, at the end.',
  'after-reset': 'The same, in reinstallations only.',
  'install.post': 'After success, with nothing mounted.',
};

/** A field of a step without a row does not compile. */
const FIELDS: Readonly<Record<keyof StepFields, string>> = {
  name: 'Name of the step, for messages and `after`.',
  optional: '`true`: a failure of this step is logged and does not end the installation.',
  after: 'List of `{name: DOCUMENT.STEP}`: run this step after those.',
  if: 'Shell command. The step runs if its status is 0.',
  only_os: 'Regular expression for PRETTY_NAME or ID in os-release.',
  only_os_version: 'Regular expression for VERSION_ID in os-release.',
  only_arch: 'Regular expression for the architecture, `amd64` or `arm64`.',
  only_service_manager: '`systemd` or `openrc`.',
  node: 'Regular expression for the name of the instance.',
  if_files: 'Lists of paths: `any`, `all`, `none`.',
  dns: 'Resolver configuration: `nameservers`, `search`, `options`, `path`.',
  downloads: 'Files to download: `path`, `url`, `permissions`, `timeout`, `owner`, `group`.',
  directories: 'Folders to create: `path`, `permissions` (0755), `owner`, `group`.',
  files: 'Files to write: `path`, `content`, `encoding`, `permissions` (0644), `owner`, `group`.',
  commands: 'Shell commands.',
  ensure_entities: 'Entries of account databases to add.',
  delete_entities: 'Entries of account databases to remove.',
  hostname: 'Host name of the instance.',
  sysctl: 'Kernel parameters, written to a file for the boot of the instance.',
  users: 'Users: `passwd`, `groups`, `ssh_authorized_keys`, `shell`, `uid` and others.',
  authorized_keys: 'Public SSH keys by user.',
  modules: 'Kernel modules to load at boot.',
  timesyncd: 'Keys of timesyncd.conf.',
  systemd_firstboot: 'Options of systemd-firstboot.',
  systemctl: 'Units to `enable`, `disable`, `mask`, and `overrides`. `start` has no effect.',
  environment: 'Variables to write to `environment_file`.',
  environment_file: 'File for `environment`. Default: `/etc/environment`.',
  layout: 'Partitions: `device`, `expand_partition`, `add_partitions`.',
  packages: 'Packages to `install` or `remove` with apt-get or apk; `refresh`, `upgrade`.',
};

export function hooksPage(): DocumentedPage {
  const isInstance = (name: string): boolean => instanceFields.some((field) => field === name);
  const shown = (isWanted: boolean): readonly (readonly [string, string])[] =>
    Object.entries(FIELDS).filter(([name]) => isInstance(name) === isWanted);
  return documented('hooks.md', 'Hook documents', {
    name: 'gnt-hooks',
    section: 5,
    purpose: 'hook documents for installations',
    blocks: [
      heading('Description'),
      paragraph(
        'A hook document adds steps to the stages of an installation, in the schema of Kairos (yip). Steps ' +
          'run in the appliance. A failing step fails the installation.',
      ),
      heading('Sources'),
      paragraph('Documents run in this order, and by file name within a source:'),
      bullets([
        'the appliance: `gnt-appliance build --hooks FOLDER`, not for passwords;',
        'the cluster: `/etc/gnt/hooks/*.yaml` on the node;',
        'the OS definition: `hooks/*.yaml` in its folder;',
        'the instance: `--hooks FILE` of `gnt-instance add`, `reinstall` and `modify`.',
      ]),
      paragraph('`gnt-instance hooks NAME` checks the documents and shows the merged order.'),
      heading('Format'),
      code(
        [
          'name: web',
          'stages:',
          '  after-install-chroot:',
          '    - name: operator',
          '      hostname: web1',
          '      users: {operator: {groups: [sudo]}}',
          '      files: [{path: /etc/motd, content: "hello\\n", permissions: 0644}]',
          '    - name: tune',
          '      optional: true',
          '      sysctl: {vm.swappiness: 10}',
        ].join('\n'),
        'yaml',
      ),
      heading('Stages'),
      paragraph('Each stage also exists with `.before` and `.after`.'),
      terms(hookPoint.options.map((point) => [point, STAGES[point]])),
      heading('Fields of a step in any stage'),
      paragraph('`layout` is refused in the `*-chroot` stages.'),
      terms(shown(false)),
      heading('Fields of a step in a chroot stage'),
      paragraph('These fields change the instance. Other stages refuse them.'),
      terms(shown(true)),
      heading('Refused fields'),
      paragraph(
        `Fields of yip that have no meaning in an installation are refused: ${Object.keys(
          refusedFields,
        )
          .map((name) => `\`${name}\``)
          .join(', ')}. Stages of other times, such as \`boot\`, are ignored.`,
      ),
      heading('Templates'),
      paragraph(
        '`if`, `files`, `commands`, `environment` and `hostname` may contain `{{ .Values.os.name }}`, ' +
          '`.vendor`, `.version`, `.architecture`, `{{ .Values.node.hostname }}` and ' +
          '`{{ .Values.Random }}`. Functions and conditions are refused.',
      ),
      heading('Limits'),
      terms([
        ['Documents of a source', `${MAX_HOOK_DOCUMENTS}.`],
        ['Documents of an installation', `${MAX_HOOKS_BYTES / MIB} MiB together.`],
      ]),
    ],
    seeAlso: ['gnt-installation(7)', 'gnt-script-environment(7)', 'gnt-instance-hooks(8)'],
  });
}
