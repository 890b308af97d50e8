import type { NetworkInfo } from '#shared/contract/network.ts';
import { drawMap } from '../../records/address-pool.ts';
import { fieldsOf, type Fields } from './fields.ts';

const { text, number, other } = fieldsOf<NetworkInfo>();
const none = (): null => null;

/** The fields of a network in Ganeti's clients. Their groups are nodes here. */
export const networkFields: Fields<NetworkInfo> = {
  name: text('Network', 'Name', ({ name }) => name),
  uuid: text('UUID', 'Network UUID', ({ uuid }) => uuid),
  network: text('Subnet', 'IPv4 subnet', ({ network }) => network),
  gateway: other('Gateway', 'IPv4 gateway', ({ gateway }) => gateway),
  network6: other('IPv6Subnet', 'IPv6 subnet', none),
  gateway6: other('IPv6Gateway', 'IPv6 gateway', none),
  mac_prefix: other('MacPrefix', 'MAC address prefix', ({ macPrefix }) => macPrefix),
  free_count: number('FreeCount', 'Number of available addresses', ({ free }) => free),
  reserved_count: number(
    'ReservedCount',
    'Number of reserved addresses',
    ({ size, free }) => size - free,
  ),
  map: text('Map', 'Actual mapping', (network) =>
    drawMap(
      network,
      network.addresses.map(({ ip }) => ip),
    ),
  ),
  external_reservations: text('ExternalReservations', 'External reservations', ({ reserved }) =>
    reserved.join(', '),
  ),
  group_list: other(
    'GroupList',
    'List of nodes that the network is connected to',
    ({ connections }) =>
      Object.entries(connections).map(([node, one]) => [
        node,
        one.mode,
        one.mode === 'bridged' ? one.link : '',
        '',
      ]),
  ),
  inst_list: other('InstanceList', 'List of instances', ({ addresses }) => [
    ...new Set(addresses.map(({ instance }) => instance)),
  ]),
  tags: other('Tags', 'Tags', ({ tags }) => tags),
};
