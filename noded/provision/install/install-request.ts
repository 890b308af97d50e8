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
  /** The instance after the installation. */
  readonly instance: InstanceRecord;
  /** Changes that are stored only with the success of the installation. */
  readonly changes: InstallChanges | undefined;
  readonly formerDisks: FormerDisks;
  /** Called right before the content of the disks is destroyed, except for worthless disks. */
  readonly giveUpFormerDisks: () => Promise<void>;
  readonly os: OsSelection | null;
  readonly scripts: ChosenScripts;
  /**
   * Called right before a script runs on the host. @throws AppError when it is no longer allowed
   */
  readonly confirmHostScript: () => Promise<void>;
  /** OS parameters for all scripts of this installation. */
  readonly parameters: OsParameters;
  /** The instance boots from the medium of `installParameters` and installs itself. */
  readonly isFromMedium: boolean;
  /** Name of the appliance. */
  readonly appliance: string;
  readonly secrets: JobSecrets;
  readonly isReinstall: boolean;
  readonly hooks: readonly HookDocument[];
  /** Dumps of an export: `import` runs instead of `create`. */
  readonly dumps: readonly DumpFile[] | null;
  readonly place: InstallPlace;
  /** Limit for the whole installation in seconds; 0 means no limit. */
  readonly timeoutS: number;
}

/** The memory and the slot of an installation on the node. */
export interface InstallPlace extends Disposable {
  /**
   * Waits for room, except when the place has it already. Called right before the first QEMU
   * process or script.
   */
  enter(): Promise<void>;
}

/** Content that the content socket may serve during an installation. */
export interface ActiveInstall {
  readonly instance: InstanceRecord;
  readonly image: FetchedImage | null;
  readonly secrets: JobSecrets;
  /** SHA-256 of the checked package; undefined for a package without checksum and signature. */
  readonly packageSha256?: string | undefined;
}

export interface InstallerDependencies {
  /** Stores the current stage. The installation succeeds even if this write fails. */
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
  /** Running installations by instance. The installer maintains the map. */
  readonly active: Map<string, ActiveInstall>;
  /** Time from power-on of an appliance to the agent's first event. */
  readonly bootTimeoutMs: number;
  readonly logDir: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Records the duration of a stage in the metrics. */
  readonly onStageEnded: (stage: InstallStage, durationMs: number) => void;
}
