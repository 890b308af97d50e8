import type { DoctorReport, NodeInfo } from '#shared/contract/api.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import type { ExportStore } from '../backup/export-store.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { Overview } from '../cluster/overview.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import type { InstanceDisks } from '../disks/instance-disks.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import type { MachineKeeper } from '../instances/machine-keeper.ts';
import type { JobService } from '../jobs/job-service.ts';
import type { MetadLink } from '../metad-link/metad-link.ts';
import type { OsRegistry } from '../os/os-registry.ts';
import type { Forwarding } from './forward.ts';

export interface ApiDependencies {
  readonly version: string;
  readonly paths: RootPaths;
  readonly clusters: ClusterRepository;
  readonly nodes: NodeRegistry;
  readonly instances: InstanceRepository;
  readonly disks: InstanceDisks;
  readonly exports: ExportStore;
  readonly runner: InstanceRunner;
  readonly keeper: MachineKeeper;
  readonly jobs: JobService;
  readonly overview: Overview;
  /** Null where everything is answered here: other nodes' requests come this far and no further. */
  readonly forwarding: Forwarding | null;
  readonly removeNode: (
    name: string,
    options: { readonly forgetInstances: boolean },
  ) => Promise<void>;
  readonly metad: MetadLink;
  readonly osRegistry: OsRegistry;
  readonly describeNode: () => Promise<NodeInfo>;
  readonly examine: () => Promise<DoctorReport>;
  /** Prometheus text of this daemon. */
  readonly metrics: () => Promise<string>;
  /** For `gnt-cluster info`. */
  readonly storeDescription: string;
  readonly logger: Logger;
}
