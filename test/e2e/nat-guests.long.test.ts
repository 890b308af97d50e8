import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../lab/own-network.ts';
import * as nat from '../noded/net/tenant/nat-lab.ts';
import { infoOf, succeed } from './support/ask-nodes.ts';
import { type ConsoleGuest, ConsoleShell, makeConsoleGuest } from './support/console-shell.ts';

/**
 * Real guests on a NAT network of the node, one of them hostile, and a server outside. Each test
 * continues from the state of the previous one.
 */
if (!hasOwnNetwork()) {
  test('guests on a NAT network, in a network of its own', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('guests on a NAT network', natGuestTests);
}

const [WEB, DB] = ['web.example.com', 'db.example.com'];
const [WEB_IP, DB_IP, GATEWAY] = ['10.9.0.2', '10.9.0.3', '10.9.0.1'];
const PORT = 7777;
const ASK_BY_DHCP = 'udhcpc -i eth0 -n -q -f -t 4 -T 2 -s /tmp/dhcp 2>&1 | tail -n 1';

function natGuestTests(): void {
  let lab: Lab;
  let guest: ConsoleGuest;
  let empty = '';
  let web: ConsoleShell;
  let db: ConsoleShell;
  const used = new DisposableStack();
  const add = async (name: string): Promise<ConsoleShell> => {
    const boot = `kernel_path=${guest.kernel},initrd_path=${guest.initrd}`;
    await succeed(
      lab, 'gnt-instance', 'add', '--no-install', '-s', '8M', '--os-image', guest.image, '-B', 'memory=256M',
      '-H', `accel=tcg,kernel_args=console=ttyS0 quiet,${boot}`, '--net', '0:network=lan,ip=pool', name,
    ); // prettier-ignore
    await succeed(lab, 'gnt-instance', 'startup', name);
    return used.use(await ConsoleShell.open(lab, name));
  };
  const fetches = async (shell: ConsoleShell, address: string): Promise<string | null> =>
    shell.run(`sleep 2 | timeout 5 nc ${address} ${PORT}; true`);
  const pings = async (shell: ConsoleShell, words: string): Promise<boolean> =>
    (await shell.run(`ping -c 1 -W 2 ${words} >/dev/null 2>&1`)) !== null;

  before(async () => {
    nat.neighbour('out', 'up0', `${nat.HOST_OUTSIDE}/24`, `${nat.OUTSIDE}/24`);
    nat.ip('route', 'add', 'default', 'via', nat.OUTSIDE);
    lab = await createLab('gnt-nat-guests');
    await chmod(lab.paths.root, 0o755);
    const resolv = join(lab.paths.root, 'resolv.conf');
    await writeFile(resolv, `nameserver ${nat.OUTSIDE}\n`);
    execFileSync('mount', ['--bind', resolv, '/etc/resolv.conf']);
    used.defer(() => execFileSync('umount', ['/etc/resolv.conf']));
    const names = [
      'dnsmasq',
      '-d',
      '--conf-file=/dev/null',
      '--no-resolv',
      '--no-hosts',
      '--pid-file=',
    ];
    const outside = spawn(
      'ip',
      ['netns', 'exec', 'out', ...names, `--address=/outside.test/${nat.OUTSIDE}`],
      { stdio: 'ignore' },
    );
    used.defer(() => void outside.kill('SIGKILL'));
    for (const namespace of ['out', undefined]) used.use(await nat.serve(PORT, namespace));
    guest = await makeConsoleGuest(lab);
    empty = nat.picture();
    await lab.startNode();
    await succeed(
      lab,
      'gnt-network',
      'add',
      '--network',
      '10.9.0.0/24',
      '--gateway',
      GATEWAY,
      'lan',
    );
    await succeed(lab, 'gnt-network', 'connect', 'lan', 'nat');
    [web, db] = [await add(WEB), await add(DB)];
  });
  after(async () => {
    for (const name of [WEB, DB])
      await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
    await lab.stopNode();
    used.dispose();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    assert.deepEqual(leftovers, []);
  });

  test('each gets the address that is its own, and the host as router and for names', async () => {
    for (const [shell, ip] of [
      [web, WEB_IP],
      [db, DB_IP],
    ] as const)
      // prettier-ignore
      assert.equal(await shell.run(ASK_BY_DHCP), `lease ${ip}/24 ${GATEWAY} ${GATEWAY}\n`);
    assert.deepEqual((await infoOf(lab, WEB)).nics.map(({ ip }) => ip), [WEB_IP]); // prettier-ignore
  });

  test('names, a ping and a connection lead outside, where it is seen as its host', async () => {
    assert.match((await web.run('nslookup -type=a outside.test')) ?? '', /198\.51\.100\.1/);
    assert.ok(await pings(web, nat.OUTSIDE));
    assert.equal(await fetches(web, nat.OUTSIDE), nat.HOST_OUTSIDE);
  });

  test('it finds its neighbour by name and reaches it, and so does the host', async () => {
    assert.match((await web.run(`nslookup -type=a ${DB}`)) ?? '', /10\.9\.0\.3/);
    assert.ok(await pings(web, DB_IP));
    execFileSync('busybox', ['ping', '-c', '1', '-W', '5', DB_IP], { stdio: 'ignore' });
  });

  test('it reaches no service of the host, by none of its addresses, and nobody outside reaches it', async () => {
    assert.ok(nat.reaches('out', nat.HOST_OUTSIDE, PORT), 'the host serves others');
    for (const address of [GATEWAY, nat.HOST_OUTSIDE, '127.0.0.1', '169.254.169.254'])
      assert.doesNotMatch((await fetches(web, address)) ?? '', /^\d/, address);
    nat.ip('-n', 'out', 'route', 'add', '10.9.0.0/24', 'via', nat.HOST_OUTSIDE);
    assert.equal(nat.inside('out', 'busybox', 'ping', '-c', '1', '-W', '2', WEB_IP), null);
  });

  test('another address, another MAC and the gateway’s ARP do not leave it', async () => {
    await web.run('ip address add 10.9.0.99/24 dev eth0');
    assert.equal(await pings(web, `-I 10.9.0.99 ${DB_IP}`), false, 'a second address');
    assert.ok(await pings(web, `-I ${WEB_IP} ${DB_IP}`));
    const [own, neighbour] = await Promise.all([web, db].map(macOf));
    assert.ok(own !== undefined && neighbour !== undefined);
    await web.run('ip address del 10.9.0.99/24 dev eth0');
    await web.run(`ip link set eth0 address ${neighbour}`);
    assert.equal(await pings(web, DB_IP), false, 'its neighbour’s MAC');
    await web.run(`ip link set eth0 address ${own}`);
    assert.ok(await pings(db, GATEWAY));
    await web.run(`ip address add ${GATEWAY}/32 dev eth0`);
    await web.run(`arping -U -c 3 -w 4 -s ${GATEWAY} -I eth0 ${GATEWAY}`);
    assert.doesNotMatch(
      (await db.run('cat /proc/net/arp')) ?? '',
      new RegExp(`^10\\.9\\.0\\.1 .*${own}`, 'm'),
    );
    await web.run(`ip address del ${GATEWAY}/32 dev eth0`);
    assert.ok(await pings(db, nat.OUTSIDE));
  });

  test('it is no DHCP server to its neighbour, where the host’s hears nothing', async () => {
    // A stopped dnsmasq would be replaced meanwhile.
    const deaf =
      'table inet deaf { chain in { type filter hook input priority -300; udp dport 67 drop; }; }';
    execFileSync('nft', [deaf]);
    await web.run(`echo 'start 10.9.0.50
end 10.9.0.60
interface eth0
lease_file /tmp/leases' >/tmp/udhcpd.conf && touch /tmp/leases`);
    await web.run('udhcpd -f -S /tmp/udhcpd.conf >/tmp/udhcpd.log 2>&1 & sleep 1');
    assert.equal(await db.run(ASK_BY_DHCP), 'udhcpc: no lease, failing\n');
    execFileSync('nft', ['delete', 'table', 'inet', 'deaf']);
    await web.run('killall udhcpd');
    assert.equal(await db.run(ASK_BY_DHCP), `lease ${DB_IP}/24 ${GATEWAY} ${GATEWAY}\n`);
  });

  test('it has nobody to speak IPv6 to', async () => {
    for (const [shell, at] of [
      [web, 2],
      [db, 3],
    ] as const) {
      // prettier-ignore
      await shell.run('echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6');
      await shell.run(`ip address add fe80::${at}/64 dev eth0; sleep 2`);
      assert.match((await shell.run('ip address show dev eth0')) ?? '', /inet6 fe80::/);
    }
    const bridge = nat.ip('-br', 'link').match(/^gb\S+/m)?.[0] ?? '';
    assert.equal(nat.ip('-6', 'address', 'show', 'dev', bridge), '');
    // The bridge's address if it had IPv6.
    const mac = nat.ip('-br', 'link', 'show', 'dev', bridge).match(/(..:){5}../)?.[0] ?? '';
    for (const address of [linkLocalOf(mac), 'fe80::3'])
      assert.equal(await web.run(`ping6 -c 1 -W 2 -I eth0 ${address} >/dev/null 2>&1`), null);
    const all = (await web.run('ping6 -c 2 -W 2 -I eth0 ff02::1')) ?? '';
    assert.doesNotMatch(all, /from (?!fe80::2\b)/, 'all of the link');
  });

  test('removed instances and networks leave nothing on the host', async () => {
    await succeed(lab, 'gnt-instance', 'remove', '--force', '--shutdown-timeout=0', WEB);
    assert.deepEqual(nat.ip('-br', 'link').match(/^gn[0-9a-f]{13}/gm)?.length, 1);
    assert.ok(await pings(db, nat.OUTSIDE));
    await succeed(lab, 'gnt-instance', 'remove', '--force', '--shutdown-timeout=0', DB);
    await succeed(lab, 'gnt-network', 'disconnect', 'lan');
    await succeed(lab, 'gnt-network', 'remove', 'lan');
    assert.equal(nat.picture(), empty);
    assert.equal(existsSync(lab.paths.networksDir), false);
  });
}

async function macOf(shell: ConsoleShell): Promise<string> {
  return ((await shell.run('cat /sys/class/net/eth0/address')) ?? '').trim();
}

/** Returns the link-local address of a MAC (RFC 4291, appendix A). */
function linkLocalOf(mac: string): string {
  const bytes = mac.split(':').map((byte) => parseInt(byte, 16));
  const [a = 0, ...rest] = bytes;
  const hex = [a ^ 2, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)].map((byte) =>
    byte.toString(16).padStart(2, '0'),
  );
  return `fe80::${hex.join('').match(/..../g)?.join(':') ?? ''}`;
}
