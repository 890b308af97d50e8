import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceView } from '#shared/contract/view.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import {
  AWS,
  AWS_UUID,
  BRIGHTBOX,
  CloudInitGuest,
  NOCLOUD,
  OPENSTACK,
} from './support/cloud-init-guest.ts';
import type { Boot } from './support/cloud-init-guest.ts';
import {
  AWS_SDK_CRAWL,
  BOTOCORE,
  foreignClients,
  runPython,
  unpackPackages,
} from './support/foreign-clients.ts';
import { HOST, RECORDINGS, TOKEN } from './support/request-recording.ts';
import type { RecordedRequest, RequestRecording } from './support/request-recording.ts';
import { exampleView } from './support/view-fixture.ts';

/**
 * `node test/metad/record-requests.ts [NAME…]`: runs real clients against metad and records their
 * requests in fixtures/requests/NAME.json.
 */

interface Session {
  readonly client: string;
  readonly view: Partial<InstanceView>;
  run(guest: Guest): Promise<unknown>;
}

const CHANNEL_ONLY = { nics: exampleView().nics.filter((nic) => nic.communication) };
const PROXY = join(import.meta.dirname, 'support/recording-proxy.ts');
const REDIRECT = `add table ip recording
add chain ip recording output { type nat hook output priority -100; }
add rule ip recording output ip daddr ${HOST} tcp dport 80 redirect to :8080`;
/** Headers of the connection, not of the request. */
const DROPPED_HEADERS = new Set(['host', 'connection', 'content-length']);

function cloudInit(name: string, boot: Boot, view: Partial<InstanceView> = {}): Session {
  return {
    client: `cloud-init 22.4.2 of Debian bookworm, ${name}: all stages of a first boot`,
    view: { ...CHANNEL_ONLY, ...view },
    run: async (guest) => {
      await using cloudInitGuest = await CloudInitGuest.create(guest.namespace);
      await cloudInitGuest.boot(boot);
    },
  };
}

/** ignition's first stage; its configuration is the user data. */
function ignition(platform: 'aws' | 'openstack', directory: string): Session {
  const userData = Buffer.from('{"ignition":{"version":"3.3.0"}}').toString('base64');
  const path = join(directory, 'usr/lib/dracut/modules.d/30ignition/ignition');
  return {
    client: `ignition 2.14 of Debian bookworm, platform ${platform}: the fetch stage`,
    view: { ...(platform === 'aws' && { metadataToken: 'required' }), userData },
    run: async (guest) => {
      const root = await mkdtemp(join(tmpdir(), 'gnt-ignition-'));
      const cache = join(root, 'config.json');
      await guest.run(path, '-platform', platform, '-stage', 'fetch', '-root', root, '-log-to-stdout', '-config-cache', cache, '-state-file', join(root, 'state')); // prettier-ignore
      const { ignition: found } = JSON.parse(await readFile(cache, 'utf8')) as {
        ignition?: object;
      };
      await rm(root, { recursive: true });
      if (found === undefined) throw new Error('ignition found no configuration');
    },
  };
}

async function sessions(): Promise<Readonly<Record<string, Session>>> {
  const clients = await foreignClients();
  const program = (path: string): string => join(clients, 'usr/bin', path);
  const ignitionTree = await unpackPackages('ignition', ['ignition']);
  return {
    'cloud-init-nocloud': cloudInit('NoCloud', NOCLOUD),
    'cloud-init-openstack': cloudInit('OpenStack', OPENSTACK),
    'cloud-init-ec2': cloudInit('EC2 without tokens', BRIGHTBOX),
    'cloud-init-ec2-tokens': cloudInit('EC2 with tokens', AWS, {
      metadataToken: 'required',
      instanceId: AWS_UUID,
    }),
    'ignition-aws': ignition('aws', ignitionTree),
    'ignition-openstack': ignition('openstack', ignitionTree),
    botocore: {
      client: 'python3-botocore 1.29.27',
      view: {},
      run: async (guest) => await runPython(guest, { clients, tree: clients }, BOTOCORE),
    },
    'aws-sdk-js': {
      client: '@aws-sdk/ec2-metadata-service 3.1162.0: the whole tree',
      view: { metadataToken: 'required' },
      run: async (guest) => await guest.run(process.execPath, AWS_SDK_CRAWL),
    },
    ec2metadata: {
      client: 'ec2metadata of cloud-guest-utils 0.33',
      view: {},
      run: async (guest) => await guest.run('/usr/bin/python3', program('ec2metadata')),
    },
    'ec2-metadata': {
      client: 'ec2-metadata of amazon-ec2-utils 2.0.1',
      view: {},
      run: async (guest) => await guest.run('bash', program('ec2-metadata')),
    },
  };
}

async function record(session: Session): Promise<RequestRecording> {
  await using lab = await ChannelLab.create();
  const view = exampleView(session.view);
  const isDhcp = session.view.nics !== undefined;
  const guest = await lab.addGuest({ ...view.channel, isUnconfigured: isDhcp });
  const { status } = await lab.put(view);
  if (status !== 204) throw new Error(`metad refused the view: ${status}`);
  const directory = await mkdtemp(join(tmpdir(), 'gnt-record-'));
  const file = join(directory, 'requests');
  const enter = ['netns', 'exec', guest.namespace, process.execPath, PROXY, file];
  const proxy = spawn('ip', enter, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(proxy.stdout, 'data');
    await guest.run('nft', REDIRECT);
    await session.run(guest);
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
    const requests = lines.map((line) => normalise(JSON.parse(line) as RecordedRequest));
    return {
      client: session.client,
      source: 'recorded by test/metad/record-requests.ts',
      view: session.view,
      requests,
    };
  } finally {
    const ended = once(proxy, 'exit');
    proxy.kill();
    await ended;
    await rm(directory, { recursive: true });
  }
}

/** Removes the parts that differ between runs. */
function normalise({ method, path, headers, body, status }: RecordedRequest): RecordedRequest {
  const kept = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !DROPPED_HEADERS.has(name))
    .map(([name, value]) => [name, name === 'x-aws-ec2-metadata-token' ? TOKEN : value]);
  return {
    method,
    path,
    headers: Object.fromEntries(kept) as Record<string, string>,
    ...(body !== undefined && body !== '' && { body }),
    status,
  };
}

const all = await sessions();
const wanted = process.argv.slice(2);
await mkdir(RECORDINGS, { recursive: true });
for (const name of wanted.length > 0 ? wanted : Object.keys(all)) {
  const session = all[name];
  if (!session) throw new Error(`no client ${name}; there are ${Object.keys(all).join(', ')}`);
  const recording = await record(session);
  await writeFile(join(RECORDINGS, `${name}.json`), `${JSON.stringify(recording, null, 2)}\n`);
  process.stdout.write(`${name}: ${recording.requests.length} requests\n`);
}
