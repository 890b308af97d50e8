import { NAME_SERVICE_PORT } from '#shared/contract/service-address.ts';
import type { ViewService } from '#shared/contract/view.ts';
import type { ServedView } from '../view/served-view.ts';

/** Listens like an operator's service. This process answers it. */
export const NAME_SERVICE: ViewService = {
  name: 'names',
  port: NAME_SERVICE_PORT,
  protocol: 'udp',
};

/** Returns whether the guest needs a name to find the metadata service, as Google's clients do. */
export function needsNames({
  dialects,
  services,
}: Pick<ServedView, 'dialects' | 'services'>): boolean {
  // A name server that the operator exposes takes precedence.
  const isTaken = services.some(
    ({ port, protocol }) => port === NAME_SERVICE_PORT && protocol === 'udp',
  );
  return dialects.includes('gce') && !isTaken;
}

export function servicesOf(view: ServedView): readonly ViewService[] {
  return needsNames(view) ? [...view.services, NAME_SERVICE] : view.services;
}
