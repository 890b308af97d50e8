import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { MAX_BULK_STREAMS, MAX_MIRROR_STREAMS } from '#shared/contract/metad-control.ts';
import { BULK_STREAM_COST, RETRY_AFTER_S } from '../config/limits.ts';
import { isFolderName } from '../view/leaf.ts';
import type { ServeStream } from './content-proxy.ts';
import { sendText } from './reply.ts';

/**
 * Limits the concurrent streams of an instance. Opening a bulk stream costs as much as many
 * requests. The answer beyond the limit is 503, which the appliance retries.
 */
export function boundStreams(serve: ServeStream): ServeStream {
  const bulk = new InstanceSlots(MAX_BULK_STREAMS);
  const folders = new InstanceSlots(MAX_MIRROR_STREAMS);
  return (exchange, name, path) => {
    const { instance, response } = exchange;
    const isBulk = !isFolderName(name);
    const giveBack = (isBulk ? bulk : folders).take(instance.view.uuid);
    const isTooOften = isBulk && instance.charge(BULK_STREAM_COST) > 0;
    if (!giveBack || isTooOften) {
      giveBack?.();
      sendText(response, 503, `too many concurrent transfers`, [
        'Retry-After',
        String(RETRY_AFTER_S),
      ]);
      return;
    }
    response.on('close', giveBack);
    serve(exchange, name, path);
  };
}
