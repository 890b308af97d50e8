import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { networkInfo, type NetworkInfo } from '#shared/contract/network.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../lab/own-network.ts';
import { ip, listDnsmasqs, picture } from '../noded/net/tenant/nat-lab.ts';
import { addHostOs } from './support/host-os.ts';

/**
 * Networks with running QEMU processes that hold their TAPs, without guests. Each test continues
 * from the state of the previous one.
 */
if (!hasOwnNetwork()) {
  test('networks and their NICs, in a network of its own', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('networks and their NICs', networkTests);
}

const NODE = 'node1.example.com';

function networkTests(): void {
  let lab: Lab;
  let empty = '';
  const gnt = async (line: string): Promise<string> => {
    const [program = '', ...args] = line.split(' ');
    const { status, stdout, stderr } = await lab.run(`gnt-${program}` as 'gnt-network', args);
    return status === 0 ? stdout : `[${status ?? ''}] ${stderr}`;
  };
  const done = async (line: string): Promise<void> => {
    const said = await gnt(line);
    assert.ok(!said.startsWith('['), `gnt-${line}: ${said}`);
  };
  const add = (name: string, net: string): Promise<string> =>
    gnt(`instance add -t diskless -o words --no-install ${net} ${name}`);
  const info = async (name: string): Promise<InstanceInfo> =>
    instanceInfo.parse(JSON.parse(await gnt(`instance info --json ${name}`)));
  const network = async (name: string): Promise<NetworkInfo> =>
    networkInfo.parse(JSON.parse(await gnt(`network info --json ${name}`)));
  const ips = async (name: string): Promise<readonly (string | null)[]> =>
    (await info(name)).nics.map((nic) => nic.ip);
  const bridges = (): readonly string[] =>
    ip('-br', 'link')
      .match(/^gb\S+/gm)
      ?.map(String) ?? [];
  const taps = (): readonly string[] => ip('-br', 'link').match(/^gn[0-9a-f]{13}/gm) ?? [];

  before(async () => {
    ip('link', 'add', 'up0', 'type', 'bridge');
    ip('address', 'add', '198.51.100.2/24', 'dev', 'up0');
    ip('link', 'set', 'up0', 'up');
    ip('route', 'add', 'default', 'via', '198.51.100.1');
    ip('link', 'add', 'br9', 'type', 'bridge');
    lab = await createLab('gnt-networks');
    // dnsmasq's user opens its files by their paths.
    await chmod(lab.paths.root, 0o755);
    await addHostOs(lab, 'words');
    empty = picture();
    await lab.startNode();
    assert.equal((await lab.run('gnt-os', ['trust', 'words'])).status, 0);
  });
  after(async () => {
    await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    assert.deepEqual(leftovers, []);
  });

  test('nothing is there until it is asked for', async () => {
    await done('network add --network 10.9.0.0/29 --gateway 10.9.0.1 --mac-prefix aa:00:09 lan');
    assert.equal(picture(), empty);
    await done('network connect lan nat');
    assert.equal(bridges().length, 1);
    assert.equal(listDnsmasqs().length, 1);
    assert.deepEqual((await network('lan')).connections, { [NODE]: { mode: 'nat' } });
  });

  test('a NIC gets a free address, or the requested one', async () => {
    await done('network modify --add-reserved-ips 10.9.0.2 lan');
    await add('web1.example.com', '--net 0:network=lan,ip=pool');
    await add('web2.example.com', '--net 0:network=lan,ip=10.9.0.5');
    assert.deepEqual(await ips('web1.example.com'), ['10.9.0.3']);
    assert.deepEqual(await ips('web2.example.com'), ['10.9.0.5']);
    assert.match((await info('web1.example.com')).nics[0]?.mac ?? '', /^aa:00:09:/);
    assert.match(
      await add('web3.example.com', '--net 0:network=lan,ip=10.9.0.5'),
      /error\[CONFLICT\]: 10\.9\.0\.5 of network 'lan' belongs to instance 'web2\.example\.com'/,
    );
    assert.match(
      await add('web3.example.com', '--net 0:network=lan,ip=10.9.0.2'),
      /error\[VALIDATION\]: 10\.9\.0\.2 is reserved in network 'lan'/,
    );
    await add('web3.example.com', '--net 0:network=lan,ip=pool --net 1:network=lan,ip=pool');
    assert.deepEqual(await ips('web3.example.com'), ['10.9.0.4', '10.9.0.6']);
    assert.match(await add('web4.example.com', '--net 0:network=lan,ip=pool'), /NO_FREE_ADDRESS/);
    assert.equal((await network('lan')).free, 0);
    await done('instance remove -f web3.example.com');
    assert.deepEqual((await network('lan')).addresses, [
      { ip: '10.9.0.3', instance: 'web1.example.com' },
      { ip: '10.9.0.5', instance: 'web2.example.com' },
    ]);
  });

  test('NICs of an instance are put into networks and taken out of them', async () => {
    await done('network add --network 10.8.0.0/24 --gateway 10.8.0.1 office');
    await done(`network connect office ${NODE} bridged br9`);
    await done('instance modify --net 0:network=office,ip=10.8.0.77 web2.example.com');
    const [nic] = (await info('web2.example.com')).nics;
    assert.deepEqual(nic?.network?.addresses, ['10.8.0.77/24']);
    assert.deepEqual(nic.network.gateways, ['10.8.0.1']);
    await done('instance modify --net 0:network=lan,ip=pool web2.example.com');
    assert.deepEqual(await ips('web2.example.com'), ['10.9.0.4']);
    assert.deepEqual((await info('web2.example.com')).nics[0]?.network, null);
    assert.deepEqual((await network('office')).addresses, []);
    assert.match(await gnt('network connect office nat'), /is connected in mode bridged on node1/);
    await done('network disconnect office');
    assert.match(
      await gnt('instance modify --net 0:network=office,ip=pool web2.example.com'),
      /\[2\] error\[CONFLICT\]: network 'office' is not connected on node node1/,
    );
    await done('network remove office');
  });

  test('a machine has its TAP there, also after noded was killed', async () => {
    await done('instance startup web1.example.com');
    assert.equal(taps().length, 1);
    assert.match(
      ip('-o', 'link', 'show', 'master', bridges()[0] ?? ''),
      new RegExp(taps()[0] ?? ''),
    );
    const before = picture();
    const killed = lab.node();
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    assert.equal(picture(), before);
    await lab.startNode();
    assert.equal(picture(), before);
    assert.match(await gnt('network disconnect lan'), /has NICs of web1\.example\.com, web2\.exam/);
  });

  test('a stopped noded leaves what its machines use, and nothing else', async () => {
    const before = picture();
    await lab.stopNode();
    assert.equal(picture(), before);
    await lab.startNode();
    await done('instance shutdown --timeout=0 web1.example.com');
    assert.deepEqual(taps(), []);
    await lab.stopNode();
    assert.equal(picture(), empty);
    await lab.startNode();
    assert.equal(bridges().length, 1);
  });

  test('removed instances and networks leave nothing on the host', async () => {
    await done('cluster modify --default-network lan');
    for (const name of ['web1', 'web2']) await done(`instance remove -f ${name}.example.com`);
    await done('network disconnect lan');
    assert.equal(picture(), empty);
    assert.equal(existsSync(lab.paths.networksDir), false);
    assert.match(await gnt('network remove lan'), /is the default network/);
    await done('cluster modify --default-network none');
    await done('network remove lan');
    assert.equal(JSON.stringify(JSON.parse(await gnt('network info --json'))), '[]');
  });
}
