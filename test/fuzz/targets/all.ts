import type { Target } from '../target.ts';
import { agentEventsTarget } from './agent-events.ts';
import { configIniTarget } from './config-ini.ts';
import { dhcpTarget } from './dhcp.ts';
import { dnsTarget } from './dns.ts';
import { hiddenValuesTarget } from './hidden-values.ts';
import { hooksTarget } from './hooks.ts';
import { httpTarget } from './http.ts';
import { imageHeaderTarget } from './image-header.ts';
import { lifecycleTarget } from './lifecycle.ts';
import { luxiTarget } from './luxi.ts';
import { peerFramesTarget } from './peer-frames.ts';
import { rapiTarget } from './rapi.ts';
import { tarTarget } from './tar.ts';
import { templatesTarget } from './templates.ts';
import { xmlTarget } from './xml.ts';

/** All parsers of foreign bytes, fast ones first. */
export const targets: readonly Target[] = [
  dhcpTarget(),
  dnsTarget(),
  imageHeaderTarget(),
  luxiTarget(),
  configIniTarget(),
  xmlTarget(),
  agentEventsTarget(),
  lifecycleTarget(),
  rapiTarget(),
  hiddenValuesTarget(),
  peerFramesTarget(),
  hooksTarget(),
  tarTarget(),
  templatesTarget(),
  httpTarget(),
];

/** @throws Error when no target has the name */
export function findTarget(name: string): Target {
  const target = targets.find((candidate) => candidate.name === name);
  if (target === undefined)
    throw new Error(
      `no target '${name}'; there are ${targets.map((known) => known.name).join(', ')}`,
    );
  return target;
}
