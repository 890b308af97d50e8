import { isMap, isSeq, parseDocument, stringify } from 'yaml';
import type { Document } from 'yaml';
import type { ViewNic } from '#shared/contract/view.ts';
import type { ServedView } from '../view/served-view.ts';

/**
 * The instance's NICs as the dialects describe them. The channel's NIC is always among them, or a
 * stock guest would leave it down. It needs no route overrides: its DHCP answers hold no router and
 * no DNS server.
 */
export function describedNics(view: ServedView): readonly ViewNic[] {
  if (view.nics.some((nic) => nic.communication)) return view.nics;
  return [...view.nics, { mac: view.channel.mac, communication: true }];
}

/**
 * cloud-init's network configuration, version 2; the operator's own document when there is one,
 * with the channel's NIC added.
 */
export function networkConfig(view: ServedView): Buffer {
  if (view.networkConfig === null) return Buffer.from(generated(view));
  const given = Buffer.from(view.networkConfig, 'base64');
  return withChannel(given, view) ?? given;
}

function generated(view: ServedView): string {
  const ethernets = Object.fromEntries(
    describedNics(view).map((nic, index) => [`eth${index}`, ethernet(nic.mac, `eth${index}`)]),
  );
  return stringify({ version: 2, ethernets }, { version: '1.1', lineWidth: 0 });
}

/**
 * ifupdown's renderer needs names, so the guest's NICs are named in the order of the instance's.
 */
function ethernet(mac: string, name: string): object {
  return { match: { macaddress: mac }, 'set-name': name, dhcp4: true };
}

/**
 * @returns null when the document is not a network configuration that we understand, or has the NIC
 * already
 */
function withChannel(given: Buffer, view: ServedView): Buffer | null {
  const text = given.toString('utf8');
  if (text.toLowerCase().includes(view.channel.mac)) return null;
  const document = parseDocument(text, { version: '1.1' });
  if (document.errors.length > 0) return null;
  const top = document.has('network') ? ['network'] : [];
  const version: unknown = document.getIn([...top, 'version']);
  if (version !== 2 && version !== 1) return null;
  const added =
    version === 2
      ? addEthernet(document, [...top, 'ethernets'], view)
      : addPhysical(document, top, view);
  return added ? Buffer.from(document.toString({ lineWidth: 0 })) : null;
}

function addEthernet(document: Document, path: readonly string[], view: ServedView): boolean {
  const ethernets: unknown = document.getIn(path);
  if (ethernets !== undefined && ethernets !== null && !isMap(ethernets)) return false;
  const channel = { match: { macaddress: view.channel.mac }, dhcp4: true };
  if (isMap(ethernets)) ethernets.set('gntcom', document.createNode(channel));
  else document.setIn(path, document.createNode({ gntcom: channel }));
  return true;
}

function addPhysical(document: Document, top: readonly string[], view: ServedView): boolean {
  const path = [...top, 'config'];
  const config: unknown = document.getIn(path);
  if (config !== undefined && config !== null && !isSeq(config)) return false;
  const channel = {
    type: 'physical',
    name: `eth${Math.max(0, describedNics(view).length - 1)}`,
    mac_address: view.channel.mac,
    subnets: [{ type: 'dhcp4' }],
  };
  if (isSeq(config)) config.add(document.createNode(channel));
  else document.setIn(path, document.createNode([channel]));
  return true;
}

/**
 * Debian's `/etc/network/interfaces`, bound to the NICs by MAC: what Nova serves as the content of
 * `network_config`.
 */
export function debianInterfaces(view: ServedView): string {
  const stanzas = describedNics(view).map(
    ({ mac }, index) =>
      `auto eth${index}\niface eth${index} inet dhcp\n    hwaddress ether ${mac}\n`,
  );
  return ['auto lo\niface lo inet loopback\n', ...stanzas].join('\n');
}

/**
 * OpenStack's network_data.json. A NIC whose address is not known to the host asks for it by DHCP.
 */
export function networkData(view: ServedView): object {
  const nics = describedNics(view);
  return {
    links: nics.map((nic, index) => ({
      id: `nic${index}`,
      type: 'phy',
      ethernet_mac_address: nic.mac,
      vif_id: nic.uuid ?? `nic${index}`,
    })),
    networks: nics.map((_nic, index) => ({
      id: `network${index}`,
      type: 'ipv4_dhcp',
      link: `nic${index}`,
      network_id: `network${index}`,
    })),
    services: [],
  };
}
