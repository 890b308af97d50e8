import { availableParallelism, totalmem } from 'node:os';
import type { BeParameters } from '#shared/contract/machine-parameters.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Ganeti's default `vcpu-ratio`. */
export const VCPUS_PER_CPU = 4;

const NONE: BeParameters = { memoryMiB: 0, vcpus: 0 };

export interface HostSize {
  readonly memoryMiB: number;
  readonly cpus: number;
}

function measureHost(): HostSize {
  return { memoryMiB: Math.floor(totalmem() / MIB), cpus: availableParallelism() };
}

/**
 * Refuses more memory than the node has, and more vcpus than its processors may serve.
 * @param former parameters of the instance: the node may have shrunk since they were set
 * @throws AppError VALIDATION
 */
export function refuseOversized(
  { memoryMiB, vcpus }: BeParameters,
  former: BeParameters = NONE,
  host: HostSize = measureHost(),
): void {
  const mostVcpus = host.cpus * VCPUS_PER_CPU;
  if (memoryMiB > Math.max(host.memoryMiB, former.memoryMiB))
    throw tooMuch('memory', `${memoryMiB}M`, `${host.memoryMiB}M`);
  if (vcpus > Math.max(mostVcpus, former.vcpus)) throw tooMuch('vcpus', `${vcpus}`, `${mostVcpus}`);
}

function tooMuch(key: string, asked: string, most: string): AppError {
  return new AppError('VALIDATION', `${key}=${asked} is more than this node can run (${most})`, {
    hint: `Give less: -B ${key}=${most}`,
  });
}
