import type { Socket } from 'node:dgram';
import type { Clock } from '#shared/clock/clock.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { Instance } from '../channel/instance.ts';
import { needsNames } from '../channel/name-service.ts';
import { bootUrls } from '../dialects/boot-paths.ts';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';
import type { Audit } from '../http/audit.ts';
import type { GuestMetrics } from '../http/guest-metrics.ts';
import { DHCP_MESSAGES_PER_SECOND } from '../config/limits.ts';
import { answerDhcp } from './answer.ts';
import { parseDhcpRequest } from './codec.ts';

const CLIENT_PORT = 68;
const RATE = { perSecond: DHCP_MESSAGES_PER_SECOND, burst: DHCP_MESSAGES_PER_SECOND };

export interface DhcpOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly audit: Audit;
  readonly metrics: GuestMetrics;
}

export function createDhcpHandler(
  instance: Instance,
  options: DhcpOptions,
): (message: Buffer, socket: Socket) => void {
  const { clock, logger, audit, metrics } = options;
  const bucket = new TokenBucket(RATE.burst, clock.monotonicMs());
  return (message, socket) => {
    const request = bucket.take(RATE, clock.monotonicMs()) === 0 ? parseDhcpRequest(message) : null;
    const { channel, name } = instance.view;
    const client = {
      mac: channel.mac,
      ip: channel.ip,
      hostName: name,
      hasNameServer: needsNames(instance.view),
      boot: bootUrls(instance.view),
    };
    const answer = request && answerDhcp(client, request);
    if (!request || !answer) {
      metrics.refused('dhcp');
      return;
    }
    logger.debug('dhcp.answer', { instance: name, type: request.type });
    socket.send(answer.bytes, CLIENT_PORT, answer.destination, (error) => {
      if (error) audit.failed(instance, 'warn', 'dhcp.send-failed', { error: messageOf(error) });
    });
  };
}
