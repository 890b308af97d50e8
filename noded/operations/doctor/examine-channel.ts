import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { inNetworkNamespace } from '#shared/sys/network-sockets.ts';
import { namespacePathOf } from '../../net/channel/network-namespace.ts';
import { withHostLinks } from '../../net/channel/rtnetlink.ts';
import { type Check, failure, ok } from './check.ts';

export const checkNamespace: Check = ({ config }) => {
  const check = 'namespace';
  const name = config.paths.networkNamespace;
  try {
    inNetworkNamespace(namespacePathOf(name), () => undefined);
    return ok(check, `the network namespace ${name} exists`);
  } catch (error) {
    return failure(
      check,
      `the network namespace ${name} cannot be entered: ${messageOf(error)}`,
      'Run noded as root on a kernel with CONFIG_NET_NS. Restart noded to create the namespace again.',
    );
  }
};

export const checkNftables: Check = async ({ config }) => {
  const check = 'nftables';
  const path = namespacePathOf(config.paths.networkNamespace);
  try {
    const { stdout } = await run('nsenter', [`--net=${path}`, 'nft', '-j', 'list', 'tables']);
    if (stdout.includes('"table"'))
      return ok(check, 'the packet filter of the channel is in place');
    return failure(
      check,
      'the packet filter of the channel is missing',
      'Restart noded: systemctl restart gnt-noded',
    );
  } catch (error) {
    return failure(check, `nft fails: ${messageOf(error)}`, 'apt-get install nftables');
  }
};

export const checkOwnMetadataAddress: Check = async () => {
  const check = 'link-local';
  try {
    const { device = 'no device', gateway } = await withHostLinks(
      `find the route to ${SERVICE_IPV4}`,
      (netlink) => netlink.findRoute(SERVICE_IPV4),
    );
    const via = gateway === undefined ? '' : ` via ${gateway}`;
    return ok(
      check,
      `this host's own route to ${SERVICE_IPV4} is ${device}${via}; the channel uses a separate namespace, so neither disturbs the other`,
    );
  } catch {
    return ok(check, `this host has no route to ${SERVICE_IPV4} of its own`);
  }
};

export const checkMetad: Check = ({ guests: { metad } }) =>
  metad.pid !== null
    ? ok('metad', `the metadata daemon runs (pid ${metad.pid})`)
    : failure(
        'metad',
        'the metadata daemon is not running',
        'gnt-noded restarts it automatically. var/log/gnt/metad.log shows why it ended.',
      );
