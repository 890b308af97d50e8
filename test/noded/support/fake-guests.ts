import type { Clock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { InstanceDisks } from '../../../noded/storage/instance-disks.ts';
import { createGuestEvents } from '../../../noded/instances/reports/guest-events.ts';
import { createGuestReports } from '../../../noded/instances/reports/guest-reports.ts';
import { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import { MachineKeeper } from '../../../noded/instances/machines/machine-keeper.ts';
import { createViews } from '../../../noded/instances/view/views.ts';
import type { ClusterRepository } from '../../../noded/records/cluster-repository.ts';
import type { InstanceRepository } from '../../../noded/records/instance-repository.ts';
import { bridgesOnly } from './bridges-only.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from './fake-node.ts';
import { createLabBootViews, noIdentities } from './lab-boot-views.ts';
import { createLabLifecycles } from './lab-lifecycles.ts';
import { noBoots } from './no-boots.ts';

/**
 * What keeps and starts a node's machines, over machines, a network and a metad that are played.
 */
export function createFakeGuests({
  clusters,
  instances,
  disks,
  clock,
}: {
  readonly clusters: ClusterRepository;
  readonly instances: InstanceRepository;
  readonly disks: InstanceDisks;
  readonly clock: Clock;
}) {
  const logger = silentLogger;
  const hypervisor = new FakeHypervisor();
  const network = new FakeNetwork();
  const metad = new FakeMetad();
  const lifecycles = createLabLifecycles();
  const views = createViews(
    instances,
    clusters,
    lifecycles,
    createLabBootViews(clusters),
    noIdentities,
  );
  const keeper = new MachineKeeper({
    enterShared: () => Promise.resolve(null),
    nicTaps: bridgesOnly,
    boots: noBoots,
    hypervisor,
    network,
    metad,
    logger,
    clock,
    onReleased: () => undefined,
    onExit: () => undefined,
  });
  const guestEvents = createGuestEvents();
  const guestReports = createGuestReports({ instances, keeper, guestEvents, logger, clock });
  const runner = new InstanceRunner({
    nicTaps: bridgesOnly,
    instances,
    keeper,
    views,
    metad,
    disks,
    guestReports,
    lifecycles,
    chooseAccelerator: () => Promise.resolve('tcg'),
    clock,
  });
  return {
    ...{ hypervisor, network, metad, lifecycles, views },
    ...{ keeper, guestEvents, guestReports, runner },
  };
}
