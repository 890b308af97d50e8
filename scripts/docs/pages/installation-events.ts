import {
  installEvent,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
  MAX_INSTALL_LOG_BYTES,
  MAX_LOG_LINE_LENGTH,
  type InstallEvent,
} from '#shared/contract/install-event.ts';
import {
  agentStages,
  hookPoint,
  type HookStage,
  hookStages,
  installStage,
  type InstallStage,
} from '#shared/contract/primitives.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { bullets, code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

type OwnStage = Exclude<InstallStage, HookStage> | 'image' | 'os-scripts' | 'personalize';

/** A stage without a row does not compile. */
const STAGES: Readonly<Record<OwnStage, string>> = {
  'fetch-image': 'Downloads the image, or takes it from the cache, and compares its checksum.',
  'check-package': 'Opens the personalization package and compares its checksum.',
  'create-disks': 'Creates or clears the disks.',
  medium: 'Runs an installation medium until it reports success.',
  'prepare-appliance': 'Checks or builds the appliance.',
  'boot-appliance': 'Boots the appliance until its agent reports.',
  'shutdown-appliance': 'Powers the appliance off.',
  hooks: 'Reads and checks all hook documents.',
  'wait-disks': 'Waits for the disks.',
  verify: 'Runs the `verify` script.',
  image: 'Writes the image to the first disk and compares the result.',
  grow: 'Enlarges the last partition and its file system.',
  mount: 'Mounts the file systems of the instance.',
  'os-scripts': 'Runs the scripts of the OS definition.',
  personalize: 'Unpacks the personalization package.',
  unmount: 'Unmounts the file systems of the instance.',
  sync: 'Writes all data to the disks.',
};

/** An event without a row does not compile. */
const EVENTS: Readonly<Record<InstallEvent['type'], string>> = {
  'agent-started': 'The agent runs. Carries the key that signs all further events.',
  'stage-started': 'A stage begins.',
  'stage-finished': 'A stage is done. `summary` is one sentence.',
  progress: '`doneBytes` of `totalBytes` of a stage.',
  log: 'A line that a script or the agent printed.',
  result: 'The outcome, `success` or `failure`. Only this event proves success.',
};

export function installationEventsPage(): DocumentedPage {
  return documented('installation-events.md', 'Installation stages and events', {
    name: 'gnt-installation',
    section: 7,
    purpose: 'stages of an installation and events of its agent',
    blocks: [
      heading('Description'),
      paragraph(
        'An installation is a sequence of stages. The job log and `gnt-instance log` show each stage ' +
          'with its duration. The error of a failed job names the stage.',
      ),
      heading('Stages on the node'),
      terms(listStages(false)),
      heading('Stages in the appliance'),
      terms(listStages(true)),
      heading('Stages for hooks'),
      paragraph(
        'Hook documents add steps to these stages, in this order. Each also exists with `.before` and ' +
          '`.after`. See `gnt-hooks(5)`.',
      ),
      bullets(hookPoint.options.map((point) => `\`${point}\``)),
      heading('Events'),
      paragraph(
        'The agent posts events as a JSON array to `/ganeti/latest/install/events`. Each event has a ' +
          '`type` and `atMs`, the milliseconds since the boot of its kernel.',
      ),
      terms(Object.entries(EVENTS)),
      paragraph(
        'In an appliance, each event is signed with HMAC-SHA-256, so that scripts cannot forge events. An ' +
          'installation medium posts unsigned events:',
      ),
      code(
        JSON.stringify([
          installEvent.parse({ type: 'result', atMs: 0, outcome: { status: 'success' } }),
        ]),
        'json',
      ),
      heading('Limits'),
      terms([
        ['Events per request', `${MAX_EVENTS_PER_BATCH}.`],
        ['Size of a request', `${MAX_EVENTS_BODY_BYTES / KIB} KiB.`],
        ['Length of a log line', `${MAX_LOG_LINE_LENGTH} characters.`],
        ['Log of an installation', `${MAX_INSTALL_LOG_BYTES / MIB} MiB.`],
      ]),
    ],
    seeAlso: ['gnt-hooks(5)', 'gnt-guest-api(7)', 'gnt-instance-log(8)'],
  });
}

function listStages(isAgent: boolean): readonly (readonly [string, string])[] {
  const isOwn = (stage: InstallStage): stage is OwnStage => Object.hasOwn(STAGES, stage);
  return installStage.options
    .filter((stage) => agentStages.has(stage) === isAgent)
    .filter((stage) => isOwn(stage) || !hookStages.some((each) => each === stage))
    .filter(isOwn)
    .map((stage) => [stage, STAGES[stage]]);
}
