import { listedOrphan } from '#shared/contract/api.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { metadStatus } from '#shared/contract/metad-control.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { ask } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';

/** A QEMU process as reported by its node. */
export interface ToldMachine {
  readonly uuid: string;
  readonly pid: number;
  readonly tap: string | null;
}

export async function listMachines(lab: Lab): Promise<readonly ToldMachine[]> {
  const instances = await ask(lab, '/v1/instances', instanceInfo.array());
  return [
    ...instances.flatMap(({ uuid, running }) =>
      running === null ? [] : [{ uuid, pid: running.pid, tap: running.tap }],
    ),
    ...(await ask(lab, '/v1/orphans', listedOrphan.array())),
  ];
}

/** Finds reported QEMU processes that do not exist, and views without a QEMU process. */
export async function findWrongMachines(
  { paths }: Lab,
  machines: readonly ToldMachine[],
  processes: readonly { readonly pid: number }[],
): Promise<readonly string[]> {
  const { body } = await askSocket(paths.metadControlSocket, '/v1/status');
  const views = metadStatus.parse(JSON.parse(body)).instances;
  return [
    ...machines
      .filter(({ pid }) => processes.every((one) => one.pid !== pid))
      .map(({ uuid, pid }) => `${uuid} is told to run as process ${pid}, which is none`),
    ...machines
      .filter(({ uuid, tap }) => tap !== null && !views.some((view) => view.uuid === uuid))
      .map(({ uuid }) => `${uuid} runs without its view`),
    ...views
      .filter(({ uuid }) => !machines.some((machine) => machine.uuid === uuid))
      .map(({ uuid }) => `a view of ${uuid}, which does not run`),
  ];
}

/**
 * Tells whether a reported QEMU process explains the finding: its files, and the disks of an
 * orphan.
 */
export function isOfMachine(text: string, machines: readonly ToldMachine[]): boolean {
  return machines.some(
    ({ uuid }) =>
      text.startsWith(`file run/gnt/vm/${uuid}/`) || text === `disks of nobody: ${uuid}`,
  );
}
