import type { ClusterRecord } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** A view holds at most as many services. */
const MAX_SERVICES = 32;
const HTTP_PORT = 80;
const DHCP_PORT = 67;

/**
 * @param services all services after the change
 * @throws AppError VALIDATION
 */
export function refuseUnusableServices(services: ClusterRecord['exposeServices']): void {
  if (Object.keys(services).length > MAX_SERVICES) {
    throw new AppError('VALIDATION', `more than ${MAX_SERVICES} exposed services`, {
      hint: 'Remove services that are not needed.',
    });
  }
  const names = new Map([
    [`tcp ${HTTP_PORT}`, 'the metadata service'],
    [`udp ${DHCP_PORT}`, "the channel's DHCP"],
  ]);
  for (const [name, service] of Object.entries(services)) {
    const { port, protocol = 'tcp' } = service;
    const other = names.get(`${protocol} ${port}`);
    if (other !== undefined) {
      throw new AppError('VALIDATION', `service '${name}': port ${port} is in use by ${other}`, {
        hint: 'Choose another port.',
      });
    }
    if (protocol === 'udp' && 'socketPath' in service) {
      throw new AppError('VALIDATION', `service '${name}': a unix socket cannot serve UDP`, {
        hint: 'Give the host and port on which the service listens.',
      });
    }
    names.set(`${protocol} ${port}`, `service '${name}'`);
  }
}
