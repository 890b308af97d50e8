import type { Clock } from '#shared/clock/clock.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstallChanges, InstanceRecord } from '#shared/contract/instance.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import type { Logger } from '#shared/log/log.ts';
import type { DumpFile } from '../../instances/backup/export-store.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { FetchedImage, ImageCache } from '../../content/images/image-cache.ts';
import type { BootViews } from '../../instances/view/boot-views.ts';
import type { GuestEvents } from '../../instances/reports/guest-events.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { Outcomes } from '../../records/outcomes.ts';
import type { JobSecrets } from '../../instances/parameters/job-secrets.ts';
import type { MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { OsParameters } from '../../instances/parameters/os-parameters.ts';
import type { Views } from '../../instances/view/views.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { OsSelection } from '../os/os-registry.ts';
import type { ApplianceFiles } from '../appliance/appliance-files.ts';
import type { ChannelCommandsOptions } from '../os/channel-commands.ts';
import type { HostCopies } from '../os/host-copies.ts';
import type { ChosenScripts } from '../os/choose-scripts.ts';
import type { Signatures } from '../../content/signatures/signatures.ts';
import type { FormerDisks } from '../../storage/choose-disks.ts';
import type { InstallRoom } from './install-room.ts';
import type { OpenInstallPackage } from './open-install-package.ts';

export interface InstallRequest {
  /** The instance as it is to be after the installation. */
  readonly instance: InstanceRecord;
  /** What is to be stored of it with the success of the installation, and not before. */
  readonly changes: InstallChanges | undefined;
  readonly formerDisks: FormerDisks;
  /** Called right before what is on the disks is destroyed, unless it is worthless. */
  readonly giveUpFormerDisks: () => Promise<void>;
  readonly os: OsSelection | null;
  /** Create scripts that run, by where. */
  readonly scripts: ChosenScripts;
  /** Called right before a script runs on the host. @throws AppError when it may not any more */
  readonly confirmHostScript: () => Promise<void>;
  /** Parameters in force for this installation, wherever it runs a script. */
  readonly parameters: OsParameters;
  /** The instance boots from `installParameters`' medium and installs itself. */
  readonly isFromMedium: boolean;
  /** The name of the appliance that it uses, wherever it needs one. */
  readonly appliance: string;
  readonly secrets: JobSecrets;
  readonly isReinstall: boolean;
  readonly hooks: readonly HookDocument[];
  /** Dumps of an export: `import` is run instead of `create`. */
  readonly dumps: readonly DumpFile[] | null;
  readonly place: InstallPlace;
  /** Seconds for the whole installation; 0 means no limit. */
  readonly timeoutS: number;
}

/** The room that an installation takes on the node. */
export interface InstallPlace extends Disposable {
  /** Waits for it, unless it was taken already. Called when there is something to run. */
  enter(): Promise<void>;
}

/** What the content socket may hand out while an installation runs. */
export interface ActiveInstall {
  readonly instance: InstanceRecord;
  readonly image: FetchedImage | null;
  readonly secrets: JobSecrets;
  /** Digest of the package that was checked, where something had to be true of it. */
  readonly packageSha256?: string | undefined;
}

export interface InstallerDependencies {
  /** Keeps the stage that an installation is in: nothing depends on its being written. */
  readonly repository: InstanceRepository;
  readonly outcomes: Pick<Outcomes, 'endInstall' | 'keepInstall'>;
  readonly disks: InstanceDisks;
  readonly images: ImageCache;
  readonly applianceFiles: ApplianceFiles;
  readonly keeper: MachineKeeper;
  readonly views: Views;
  readonly bootViews: Pick<BootViews, 'forInstall' | 'isSilent'>;
  readonly guestEvents: GuestEvents;
  readonly hostCopies: HostCopies;
  readonly channelCommands: ChannelCommandsOptions;
  readonly chooseAccelerator: (
    wanted: 'auto' | 'kvm' | 'tcg',
    context: JobContext,
  ) => Promise<'kvm' | 'tcg'>;
  readonly openPackage: OpenInstallPackage;
  readonly signatures: Signatures;
  readonly room: InstallRoom;
  /** Installations that are under way, by instance: the installer keeps the map. */
  readonly active: Map<string, ActiveInstall>;
  /** Time from power-on of an appliance to its agent's first word. */
  readonly bootTimeoutMs: number;
  readonly logDir: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Tells the metrics how long a stage took. */
  readonly onStageEnded: (stage: InstallStage, durationMs: number) => void;
}
