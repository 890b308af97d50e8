import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, test } from 'node:test';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { writeSeedDisk } from '../../../noded/storage/seed-disk.ts';
import { ChannelLab } from './channel-lab.ts';
import type { Guest } from './channel-lab.ts';
import {
  AWS,
  AWS_UUID,
  BRIGHTBOX,
  CloudInitGuest,
  GCE,
  NOCLOUD,
  OPENSTACK,
  SEED_ALONE,
  cloudInitTree,
} from './cloud-init-guest.ts';
import type { Boot, CloudInitRelease } from './cloud-init-guest.ts';
import { eventsUntil } from './control-events.ts';
import {
  INCLUDED_KEY,
  INCLUDED_SCRIPT,
  KINDS_OF_USER_DATA,
  KINDS_RAN,
  MULTIPART_VENDOR_DATA,
  RAN,
  VENDOR_RAN,
} from './kinds-of-user-data.ts';
import { lifecycleOf, scriptOf } from './lifecycle-fixture.ts';
import { exampleView } from './view-fixture.ts';

const USER_DATA = `#!/bin/sh
echo once >>/var/user-data-ran
service=http://169.254.169.254
token=$(curl -sSf -m 10 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $service/latest/api/token)
curl -sS -m 10 -H "X-aws-ec2-metadata-token: $token" --data-binary "hello from $(hostname)" $service/ganeti/latest/write
`;

const NEEDS_NOBODY = `#cloud-config
users: [default, {name: anna, ssh_authorized_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAnna"]}]
runcmd: [["sh", "-c", "echo once >>/var/user-data-ran"]]
`;

const WRITE = 'http://169.254.169.254/ganeti/latest/write';
const OWN_REPORTS = `#cloud-config
phone_home: {url: "${WRITE}", post: [hostname], tries: 1}
reporting: {mine: {type: webhook, endpoint: "${WRITE}", timeout: 5, retries: 1}}
runcmd: [["sh", "-c", "echo once >>/var/user-data-ran"]]
`;

type BootStatusEvent = Extract<MetadEvent['event'], { type: 'boot-result' }>;

function isEnd(event: MetadEvent['event']): event is BootStatusEvent {
  return event.type === 'boot-result' && event.result.stage === null;
}

const TYPE_TAG = 'rs_agent:type=right_link_lite';
const IDENTITY_FILE = 'var/lib/rightscale-identity';
const INSTALLER_URL = `http://169.254.169.254/latest/meta-data/tags/instance/${INCLUDED_KEY}`;

function identityOf({ uuid, clusterName }: InstanceView): string {
  return `client_id='${uuid}'\nclient_secret=''\naccount='${clusterName}'\napi_hostname='169.254.169.254'\n`;
}

/** From the boothook of the network stage on. A stage of a tenth of a second may be missed. */
const TOLD_STAGES = ['init-network', 'modules-config', 'modules-final', 'ready', null];
function stagesTold(events: readonly MetadEvent['event'][]): readonly (string | null)[] {
  return events.flatMap((event) => {
    if (event.type === 'ready') return ['ready'];
    return event.type === 'boot-result' ? [event.result.stage] : [];
  });
}

/**
 * Modules that cannot work in the tree: Debian 12's has no Perl, in which update-locale is written.
 */
const FAILING_MODULES: Readonly<Record<CloudInitRelease, readonly string[]>> = {
  bookworm: ['locale'],
  trixie: [],
  testing: [],
};

/** Debian 12's tree has no sshd. */
const KEY_TYPES = ['ecdsa-sha2-nistp256', 'ssh-ed25519', 'ssh-rsa'];
const HOST_KEYS: Readonly<Record<CloudInitRelease, readonly string[]>> = {
  bookworm: [],
  trixie: KEY_TYPES,
  testing: KEY_TYPES,
};

/** A stock cloud-init against each dialect, in all stages, at its first and at later boots. */
export function testCloudInit(release: CloudInitRelease): void {
  describe(`cloud-init of Debian ${release}`, () => {
    const failing = FAILING_MODULES[release];
    const isOfTree = (error: string): boolean =>
      failing.some((name) => error.startsWith(`('${name}'`));
    let lab: ChannelLab;
    let guest: Guest;
    let cloudInit: CloudInitGuest;
    let view: InstanceView;

    before(
      async () => {
        await cloudInitTree(release);
      },
      { timeout: 1_200_000 },
    );
    beforeEach(async () => {
      // One NIC, as in an instance whose only network is the channel.
      const base = exampleView();
      view = exampleView({
        nics: base.nics.filter((nic) => nic.communication),
        userData: Buffer.from(USER_DATA).toString('base64'),
      });
      lab = await ChannelLab.create();
      guest = await lab.addGuest({ ...view.channel, isUnconfigured: true });
      assert.equal((await lab.put(view)).status, 204);
      cloudInit = await CloudInitGuest.create(guest.namespace, release);
    });
    afterEach(async () => {
      await cloudInit[Symbol.asyncDispose]();
      await lab[Symbol.asyncDispose]();
    });

    /** Asserts cloud-init's own query names: zone, region, and the operator's metadata. */
    async function assertQueries(role: readonly string[]): Promise<void> {
      const text = await cloudInit.file('var/instance-data.json');
      const data = JSON.parse(text ?? '{}') as { v1?: Record<string, unknown>; ds?: unknown };
      assert.equal(data.v1?.['availability_zone'], view.primaryNode);
      assert.equal(data.v1['region'], view.clusterName);
      const found = role.reduce<unknown>(
        (value, key) => (value as Record<string, unknown> | undefined)?.[key],
        data.ds,
      );
      assert.equal(found, view.metadata['role'], role.join('.'));
    }

    /**
     * Asserts that the host gets each stage, the readiness, and the contents of cloud-init's own
     * files.
     */
    async function assertVerdict(): Promise<void> {
      const events = (
        await eventsUntil(lab, 0, (some) => some.some(({ event }) => isEnd(event)))
      ).map(({ event }) => event);
      const [ready] = events.flatMap((event) => (event.type === 'ready' ? [event] : []));
      const form = new URLSearchParams(ready?.text);
      assert.deepEqual([ready?.source, form.get('login_user')], ['cloud-init', 'debian']);
      const keys = events.flatMap((event) => (event.type === 'host-keys' ? event.keys : []));
      // GCE's datasource also publishes them as guest attributes.
      const types = new Set(keys.map((key) => key.split(' ')[0]));
      assert.deepEqual([...types].sort(), HOST_KEYS[release]);
      const stages = stagesTold(events);
      assert.deepEqual(
        TOLD_STAGES.filter((stage) => stages.includes(stage)),
        stages,
      );
      // The reporting script polls ten times a second: on a busy host it may miss a stage.
      assert.ok(stages.length > 2, stages.join());
      assert.deepEqual(stages.slice(-2), ['ready', null]);
      const [told] = events.flatMap((event) => (isEnd(event) ? [event.result] : []));
      assert.equal(told?.errors.length, failing.length);
      assert.ok(told.errors.every(isOfTree));
      assert.deepEqual(
        told.stages.map(({ name }) => name),
        ['init-local', 'init-network', 'modules-config', 'modules-final'],
      );
    }

    async function assertFirstBoot(boot: Boot, datasource: RegExp): Promise<void> {
      const { result } = await cloudInit.boot(boot);
      assert.match(result.datasource, datasource);
      assert.deepEqual(
        result.errors.filter((error) => !isOfTree(error)),
        [],
      );
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
      assert.equal(
        (await cloudInit.file('var/lib/cloud/data/instance-id'))?.trim(),
        view.instanceId,
      );
      const written = await lab.control('GET', `/v1/instances/${view.uuid}/queue`);
      assert.equal(written.body.toString(), 'hello from web1');
      const keys = await cloudInit.file('root/.ssh/authorized_keys');
      assert.match(keys ?? '', /AAAAC3Nza/);
    }

    /**
     * Asserts a reboot, and a boot after a reinstall: the script must run again only after the
     * latter.
     */
    async function assertLaterBoots(boot: Boot): Promise<void> {
      await cloudInit.boot(boot);
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
      view = { ...view, revision: 2, instanceId: 'ec2a1b2c-0000-4000-8000-00000000beef' };
      await lab.put(view);
      await cloudInit.boot(boot);
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\nonce\n');
    }

    test('every kind of user data in a compressed multi-part document runs, beside multi-part vendor data', async () => {
      view = {
        ...view,
        revision: 2,
        metadata: { ...view.metadata, role: 'web', [INCLUDED_KEY]: INCLUDED_SCRIPT },
        userData: KINDS_OF_USER_DATA.toString('base64'),
        vendorData: MULTIPART_VENDOR_DATA.toString('base64'),
      };
      await lab.put(view);
      const { result } = await cloudInit.boot(NOCLOUD);
      assert.deepEqual(
        result.errors.filter((error) => !isOfTree(error)),
        [],
      );
      const ran = ((await cloudInit.file(RAN)) ?? '').trim().split('\n').sort();
      assert.deepEqual(ran, [...KINDS_RAN, ...VENDOR_RAN]);
      await assertVerdict();
    });

    test('stock cloud-init completes all stages with NoCloud, and again only after a reinstall', async () => {
      await assertFirstBoot(NOCLOUD, /^DataSourceNoCloudNet/);
      await assertQueries(['meta_data', 'role']);
      await assertVerdict();
      await assertLaterBoots(NOCLOUD);
    });

    test('stock cloud-init completes all stages with OpenStack, and again only after a reinstall', async () => {
      await assertFirstBoot(OPENSTACK, /^DataSourceOpenStack/);
      await assertQueries(['meta_data', 'meta', 'role']);
      await assertVerdict();
      await assertLaterBoots(OPENSTACK);
    });

    test('stock cloud-init finds Google’s tree by its name, completes all stages, and again only after a reinstall', async () => {
      const asked = { dialects: ['ganeti', 'gce', 'ec2'], bootReport: 'user-data' } as const;
      view = { ...view, ...asked, dialects: [...asked.dialects], revision: 2 };
      await lab.put(view);
      const { result } = await cloudInit.boot(GCE);
      assert.match(result.datasource, /^DataSourceGCE/);
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
      assert.match((await cloudInit.file('home/debian/.ssh/authorized_keys')) ?? '', /AAAAC3Nza/);
      await assertVerdict();
      view = { ...view, revision: 3, instanceId: 'ec2a1b2c-0000-4000-8000-00000000beef' };
      await lab.put(view);
      await cloudInit.boot(GCE);
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\nonce\n');
    });

    test('stock cloud-init completes all stages with EC2 without tokens, and again only after a reinstall', async () => {
      await assertFirstBoot(BRIGHTBOX, /^DataSourceEc2/);
      await assertLaterBoots(BRIGHTBOX);
    });

    test('stock cloud-init completes all stages with EC2 where tokens are required', async () => {
      const asked = { metadataToken: 'required', bootReport: 'user-data' } as const;
      view = { ...view, ...asked, revision: 2, instanceId: AWS_UUID };
      await lab.put(view);
      await assertFirstBoot(AWS, /^DataSourceEc2/);
      await assertQueries(['meta-data', 'tags', 'instance', 'role']);
      await assertVerdict();
    });

    test('a guest with the seed disk gets its users, keys and user data while the channel is away', async (t) => {
      view = { ...view, revision: 2, userData: Buffer.from(NEEDS_NOBODY).toString('base64') };
      await lab.put(view);
      const read = async (name: string): Promise<Buffer> =>
        (await lab.control('GET', `/v1/instances/${view.uuid}/tree/nocloud/${name}`)).body;
      const directory = await mkdtemp(join(tmpdir(), 'gnt-seed-'));
      t.after(() => rm(directory, { recursive: true }));
      const seed = join(directory, 'seed.img');
      await writeSeedDisk(seed, {
        'meta-data': await read('meta-data'),
        'network-config': await read('network-config'),
        'user-data': await read('user-data'),
        'vendor-data': await read('vendor-data'),
      });
      await cloudInit.placeSeed(seed);
      const { result } = await cloudInit.boot(SEED_ALONE);
      assert.match(result.datasource, /^DataSourceNoCloud /);
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
      assert.match((await cloudInit.file('etc/passwd')) ?? '', /^anna:/m);
      assert.match((await cloudInit.file('home/anna/.ssh/authorized_keys')) ?? '', /IAnna/);
      assert.match((await cloudInit.file('home/debian/.ssh/authorized_keys')) ?? '', /AAAAC3Nza/);
    });

    test('a guest with run lists gets their agent, which runs the boot list in each boot', async () => {
      const boot = [scriptOf('01-count', 'echo "$GREETING" | tee -a /var/counted')];
      const lists = { boot, operational: [], decommission: [] };
      await lab.put({ ...view, revision: 2, lifecycle: lifecycleOf({ lists }) });
      for (const counted of ['hello\n', 'hello\nhello\n']) {
        await cloudInit.boot(NOCLOUD);
        assert.equal(await cloudInit.file('var/counted'), counted);
      }
      const said = await eventsUntil(lab, 0, (some) => some.length > 0);
      const words = said.flatMap(({ event }) =>
        event.type === 'lifecycle' ? [event.event.type] : [],
      );
      const once = ['booting', 'started', 'finished', 'operational'];
      assert.deepEqual(words, [...once, ...once]);
      // The user's own script also ran.
      assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
    });

    test('with RightLink’s tag EC2’s guests get identity, agent and their own user data, of every kind', async () => {
      const boot = [scriptOf('01-count', 'echo "$GREETING" | tee -a /var/counted')];
      const lists = { boot, operational: [], decommission: [] };
      view = {
        ...view,
        revision: 2,
        tags: [TYPE_TAG],
        metadata: { ...view.metadata, role: 'web', [INCLUDED_KEY]: INCLUDED_SCRIPT },
        userData: KINDS_OF_USER_DATA.toString('base64'),
        lifecycle: lifecycleOf({ lists }),
      };
      await lab.put(view);
      for (const counted of ['hello\n', 'hello\nhello\n']) {
        const { result } = await cloudInit.boot(BRIGHTBOX);
        assert.deepEqual(
          result.errors.filter((error) => !isOfTree(error)),
          [],
        );
        assert.equal(await cloudInit.file(IDENTITY_FILE), identityOf(view));
        assert.equal(await cloudInit.mode(IDENTITY_FILE), 0o600);
        assert.equal(await cloudInit.file('var/counted'), counted);
        // Each boot restores it.
        await cloudInit.remove(IDENTITY_FILE);
      }
      const ran = ((await cloudInit.file(RAN)) ?? '').trim().split('\n');
      // EC2 has no `ds.meta_data.role`.
      for (const kind of KINDS_RAN)
        assert.ok(
          ran.some((line) => line.startsWith(kind.split(' ')[0] ?? '')),
          kind,
        );
    });

    test('an identity that cloud-config writes stands beside the user’s own files, and a tag’s installer is run in each boot in place of ours', async () => {
      const files = [{ path: '/var/own', content: 'own' }];
      const userData = `#cloud-config\n${JSON.stringify({ write_files: files })}`;
      view = {
        ...view,
        revision: 2,
        tags: [
          ...[TYPE_TAG, 'rs_agent:mime_identity=write_file'],
          `rs_agent:mime_shellscript=${INSTALLER_URL}`,
        ],
        metadata: { [INCLUDED_KEY]: '#!/bin/sh\necho installed >>/var/installed\n' },
        userData: Buffer.from(userData).toString('base64'),
        lifecycle: lifecycleOf({ lists: { boot: [], operational: [], decommission: [] } }),
      };
      await lab.put(view);
      for (const installed of ['installed\n', 'installed\ninstalled\n']) {
        await cloudInit.boot(NOCLOUD);
        assert.equal(await cloudInit.file('var/installed'), installed);
      }
      assert.equal(await cloudInit.file('var/own'), 'own');
      assert.equal(await cloudInit.file(IDENTITY_FILE), identityOf(view));
      assert.equal(await cloudInit.mode(IDENTITY_FILE), 0o600);
      assert.equal(await cloudInit.file('var/lib/rightlink/agent'), null);
      assert.equal(await cloudInit.file('var/lib/cloud/scripts/per-boot/gnt-installer'), null);
    });

    for (const [bootReport, boot] of [
      ['vendor-data', NOCLOUD],
      ['user-data', BRIGHTBOX],
    ] as const) {
      test(`a user's own phone_home and reporting stand beside ours in ${bootReport}`, async () => {
        const userData = Buffer.from(OWN_REPORTS).toString('base64');
        view = { ...view, revision: 2, userData, bootReport };
        await lab.put(view);
        await cloudInit.boot(boot);
        assert.equal(await cloudInit.file('var/user-data-ran'), 'once\n');
        const queue = await lab.control('GET', `/v1/instances/${view.uuid}/queue`);
        const theirs = queue.body.toString();
        assert.ok(theirs.includes('hostname=web1'));
        assert.ok(theirs.includes('"name": "modules-final/config-phone-home"'));
        await assertVerdict();
      });
    }
  });
}
