import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import type { NewInstance } from '../records/instance-repository.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Checks that a guest can receive its run lists, and its scripts their inputs.
 * @throws AppError RUN_LIST_INVALID, INPUT_MISSING
 */
export async function checkRunLists(
  instance: NewInstance | InstanceRecord,
  { lifecycles, clusters }: Pick<OperationDependencies, 'lifecycles' | 'clusters'>,
): Promise<void> {
  refuseUnserved(instance);
  const parameters = await loadParameters(instance, clusters);
  const values = [...parameters].map(([name, { value }]) => [name, value] as const);
  await lifecycles.check(instance, new Map(values));
}

function refuseUnserved({
  name,
  runLists,
  communication,
  dialects,
}: NewInstance | InstanceRecord): void {
  if (runLists === null || (communication && dialects.includes('ganeti'))) return;
  const [what, hint] = communication
    ? ['without the ganeti dialect', 'Add ganeti to --dialects']
    : ['without communication', 'Add --communication yes'];
  throw new AppError(
    'RUN_LIST_INVALID',
    `'${name}' has run lists, which a guest ${what} cannot receive`,
    { hint: `${hint}, or unset them with --run-list none.` },
  );
}
