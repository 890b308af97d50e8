import type { InstanceInfo, InstanceRecord, InstanceStatus } from '#shared/contract/instance.ts';
import type { Lifecycles } from './run-lists/lifecycles-contract.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { BootViews } from './view/boot-views.ts';
import { loadAppliance } from './record/choose-appliance.ts';
import { describeInstance } from './describe-instance.ts';
import type { GuestReports } from './reports/guest-reports.ts';
import type { InstanceRunner } from './instance-runner.ts';
import { loadParameters, type ParameterSources } from './parameters/load-parameters.ts';

export interface InstanceInfoSources {
  readonly runner: Pick<InstanceRunner, 'running'>;
  readonly guestReports: Pick<GuestReports, 'report'>;
  readonly lifecycles: Pick<Lifecycles, 'explain'>;
  readonly bootViews: Pick<BootViews, 'state'>;
  readonly clusters: Pick<ClusterRepository, 'load'> & ParameterSources;
}

/**
 * Returns an instance as every interface shows it: its record without private values, and its
 * running QEMU process.
 */
export async function loadInstanceInfo(
  record: InstanceRecord,
  { runner, guestReports, lifecycles, bootViews, clusters }: InstanceInfoSources,
  status?: InstanceStatus,
): Promise<InstanceInfo> {
  const kept = runner.running(record.uuid);
  const report = guestReports.report(record);
  const parameters = await loadParameters(record, clusters);
  const appliance = await loadAppliance(record, clusters);
  const running =
    kept === undefined
      ? null
      : {
          machine: {
            pid: kept.machine.pid,
            accelerator: kept.machine.accelerator,
            startedAtMs: kept.machine.startedAtMs,
            tap: kept.device,
            readyAtMs: report?.readyAtMs ?? null,
            halt: kept.machine.halt,
            bootEnv: bootViews.state(record.uuid),
            lostSecrets: [...kept.lostSecrets],
          },
          report,
        };
  const instance = { ...record, lifecycle: lifecycles.explain(record) };
  return describeInstance(instance, running, { parameters, appliance }, status);
}
