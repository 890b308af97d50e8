import { z } from 'zod';

/** Fields that clients of Ganeti's remote API read, from their sources. */
export interface ClientReads {
  readonly client: string;
  /** `NAME` is an instance, `NODE` its node, `JOB` a job that has ended. */
  readonly path: string;
  readonly answer: z.ZodType;
}

const text = z.string();
const whole = z.int();
/** Go's `encoding/json` takes null, but no fraction for a whole number. */
const orNull = <T extends z.ZodType>(type: T): z.ZodNullable<T> => type.nullable();
const timestamp = z.tuple([whole, whole]);
const present = z.unknown().refine((value) => value !== undefined, 'the field is missing');

function keys(names: string): z.ZodType {
  return z.object(Object.fromEntries(names.split(' ').map((name) => [name, present])));
}

/** prometheus-ganeti-exporter 1.x. A running instance has numbers, a stopped one is not read. */
const exporter = [
  ['/2/info', z.object({ name: text })],
  ['/2/groups', z.array(z.object({ name: text })).min(1)],
  [
    '/2/nodes?bulk=1',
    z
      .array(
        z.object({
          name: text,
          offline: z.boolean(),
          ctotal: whole,
          dfree: whole,
          dtotal: whole,
          mfree: whole,
          mtotal: whole,
          pinst_cnt: whole,
          sinst_cnt: whole,
        }),
      )
      .min(1),
  ],
  [
    '/2/instances?bulk=1',
    z
      .array(
        z.object({
          name: text,
          oper_state: z.boolean(),
          oper_ram: orNull(whole),
          oper_vcpus: orNull(whole),
          pnode: text,
          snodes: z.array(text),
        }),
      )
      .min(1),
  ],
  [
    '/2/jobs?bulk=1',
    z
      .array(
        z.object({
          id: whole,
          status: z.enum([
            'queued',
            'waiting',
            'canceling',
            'running',
            'canceled',
            'success',
            'error',
          ]),
          ops: z.array(z.object({ OP_ID: z.string().startsWith('OP_') })).min(1),
          received_ts: timestamp,
          start_ts: orNull(timestamp),
          end_ts: orNull(timestamp),
        }),
      )
      .min(1),
  ],
] as const;

const goNode = z.object({
  name: text,
  ...{ pinst_cnt: whole, sinst_cnt: whole, serial_no: orNull(whole) },
  ...{ pinst_list: z.array(text), sinst_list: z.array(text), tags: z.array(text) },
  ...{ dtotal: orNull(whole), dfree: orNull(whole), ctotal: orNull(whole) },
  ...{ mtotal: orNull(whole), mfree: orNull(whole), mnode: orNull(whole) },
  ...{ cnodes: orNull(whole), csockets: orNull(whole), cnos: orNull(whole) },
  ...{ offline: z.boolean(), drained: z.boolean(), vm_capable: z.boolean() },
  ...{ master_candidate: z.boolean(), master_capable: z.boolean(), role: text },
  ...{ pip: orNull(text), sip: orNull(text), uuid: orNull(text), 'group.uuid': text },
  ...{ ctime: orNull(z.number()), mtime: orNull(z.number()) },
  ndparams: z.object({
    ...{ ovs: z.boolean(), ovs_link: text, ovs_name: text, oob_program: text },
    ...{ ssh_port: whole, spindle_count: whole, exclusive_storage: z.boolean(), cpu_speed: whole },
  }),
});
const goBackend = z.object({
  ...{ auto_balance: z.boolean(), always_failover: z.boolean(), spindle_use: whole },
  ...{ vcpus: whole, memory: whole, minmem: whole, maxmem: whole },
});
/** Every parameter that both have is text there. */
const goHypervisor = z.record(z.string(), z.union([text, z.number()])).check((context) => {
  for (const name of [
    'boot_order',
    'cdrom_image_path',
    'kernel_path',
    'initrd_path',
    'kernel_args',
  ])
    if (context.value[name] !== undefined && typeof context.value[name] !== 'string')
      context.issues.push({ code: 'custom', message: `${name} is no text`, input: context.value });
});
const goInstance = z.object({
  ...{ name: text, admin_state: text, status: text, pnode: text, os: text, uuid: text },
  ...{ oper_state: z.boolean(), ctime: z.number(), mtime: z.number(), serial_no: whole },
  ...{ snodes: z.array(text), tags: z.array(text), network_port: orNull(whole) },
  ...{ disk_template: text, disk_usage: whole, 'disk.uuids': z.array(text).min(1) },
  ...{ 'disk.names': z.array(z.unknown()).min(1), 'disk.sizes': z.array(whole).min(1) },
  ...{ 'nic.uuids': z.array(text).min(1), 'nic.modes': z.array(text), 'nic.macs': z.array(text) },
  ...{ 'nic.names': z.array(z.unknown()).min(1), 'nic.bridges': z.array(z.unknown()).min(1) },
  custom_nicparams: z.array(z.object({ vlan: text.optional() })).min(1),
  ...{ beparams: goBackend, custom_beparams: goBackend.partial() },
  ...{ hvparams: goHypervisor, custom_hvparams: goHypervisor, oper_ram: present },
});
const goJob = z.object({
  ...{ id: whole, status: text, summary: z.array(text).min(1), opstatus: z.array(text) },
  ...{ received_ts: z.array(whole).min(1), start_ts: orNull(z.array(whole)) },
  ...{ end_ts: orNull(z.array(whole)), ops: z.array(z.unknown()) },
});
const entry = z.tuple([whole, z.array(whole).min(1), text, z.unknown()]);
/** gnt-cc of January 2026. It decodes into structures of Go. */
const gntCc = [
  [
    '/2/groups?bulk=1',
    z
      .array(
        z.object({
          ...{ uuid: text, name: text, alloc_policy: text, node_list: z.array(text) },
          ...{ tags: z.array(z.unknown()), node_cnt: whole, serial_no: whole },
        }),
      )
      .min(1),
  ],
  ['/2/nodes', z.array(z.object({ id: text })).min(1)],
  ['/2/nodes?bulk=1', z.array(goNode).min(1)],
  ['/2/nodes/NODE', goNode],
  ['/2/instances', z.array(z.object({ id: text })).min(1)],
  ['/2/instances/NAME', goInstance],
  [
    '/2/query/instance?fields=name,pnode,snodes,beparams,oper_state,hvparams',
    z.object({
      fields: z.array(z.object({ name: text, title: text, kind: text, doc: text })).length(6),
      data: z
        .array(
          z.tuple([
            z.tuple([whole, text]),
            z.tuple([whole, text]),
            z.tuple([whole, z.array(text)]),
            z.tuple([whole, goBackend]),
            z.tuple([whole, z.boolean()]),
            z.tuple([whole, goHypervisor]),
          ]),
        )
        .min(1),
    }),
  ],
  ['/2/jobs?bulk=1', z.array(goJob).min(1)],
  ['/2/jobs/JOB', goJob.extend({ oplog: z.array(z.array(entry)).min(1) })],
] as const;

/** Ansible's module sipgate.ganeti.ganeti_instance. */
const sipgate = [
  [
    '/2/instances/NAME',
    z.object({
      status: z.enum(['running', 'ADMIN_down', 'ERROR_down', 'ERROR_up', 'ERROR_nodedown']),
      ...{ pnode: text, tags: z.array(text), 'disk.sizes': z.array(whole).min(1) },
      beparams: z.object({ vcpus: whole, maxmem: whole }),
      custom_nicparams: z.array(z.object({ mode: text, link: orNull(text) })).min(1),
    }),
  ],
  ['/2/groups/default', z.object({ node_list: z.array(text).min(1) })],
  [
    '/2/jobs/JOB',
    z.object({ oplog: z.array(z.unknown()), summary: z.array(text), opresult: present }),
  ],
] as const;

/** ganeti-rapi-client-python, which the Ansible collection codefritzel.ganeti uses. */
const codefritzel = [
  [
    '/2/instances/NAME',
    keys(
      'name admin_state os pnode snodes disk_template nic.ips nic.macs nic.modes nic.uuids ' +
        'nic.names nic.links nic.networks nic.networks.names nic.bridges network_port disk.sizes ' +
        'disk.spindles disk.uuids disk.names disk_usage beparams hvparams oper_state oper_ram ' +
        'oper_vcpus status ctime mtime uuid serial_no tags',
    ),
  ],
  [
    '/2/nodes/NODE',
    keys(
      'name offline master_candidate drained dtotal dfree sptotal spfree mtotal mnode mfree ' +
        'pinst_cnt sinst_cnt ctotal cnos cnodes csockets pip sip role pinst_list sinst_list ' +
        'master_capable vm_capable ndparams group.uuid ctime mtime uuid serial_no tags secondary_ip',
    ),
  ],
  ['/2/jobs/JOB', keys('id status ops opstatus opresult')],
] as const;

/** terraform-provider-ganeti. */
const terraform = [
  [
    '/2/instances/NAME',
    z.object({
      ...{ admin_state: text, disk_template: text, name: text, pnode: text, os: text },
      ...{ status: text, uuid: text, beparams: z.object({ memory: whole, vcpus: whole }) },
    }),
  ],
  ['/2/jobs/JOB', z.object({ status: text })],
] as const;

export const CLIENT_READS: readonly ClientReads[] = Object.entries({
  'prometheus-ganeti-exporter': exporter,
  'gnt-cc': gntCc,
  'sipgate.ganeti': sipgate,
  'codefritzel.ganeti': codefritzel,
  'terraform-provider-ganeti': terraform,
}).flatMap(([client, reads]) => reads.map(([path, answer]) => ({ client, path, answer })));

/** Requests as these clients send them. `web.example.com` is new, NAME exists. */
export const CLIENT_REQUESTS: readonly {
  readonly client: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}[] = [
  // gnt-cc encodes a missing body as `null`.
  ...(['startup', 'shutdown', 'migrate', 'failover'] as const).map((action) => ({
    client: 'gnt-cc',
    method: 'PUT',
    path: `/2/instances/NAME/${action}`,
    body: null,
  })),
  { client: 'gnt-cc', method: 'POST', path: '/2/instances/NAME/reboot', body: null },
  {
    client: 'terraform-provider-ganeti',
    method: 'POST',
    path: '/2/instances',
    body: {
      __version__: 1,
      beparams: { memory: '1G', vcpus: 1 },
      disks: [{ size: '20G' }],
      disk_template: 'file',
      group_name: 'default',
      hypervisor: 'kvm',
      instance_name: 'web.example.com',
      mode: 'create',
      nics: [{ link: 'br0' }],
      os_type: 'rapi-os',
    },
  },
  {
    client: 'sipgate.ganeti',
    method: 'POST',
    path: '/2/instances',
    body: {
      ...{ __version__: 1, mode: 'create', name: 'web.example.com', disk_template: 'file' },
      ...{ disks: [{ size: 1024 }], nics: [{ mode: 'bridged', link: 'br0', mac: 'generate' }] },
      ...{ hypervisor: 'kvm', iallocator: 'hail', os_type: 'rapi-os', pnode: null, snode: null },
      ...{ beparams: { memory: 256, minmem: 256, maxmem: 256, vcpus: 1 }, group_name: null },
      ...{ conflicts_check: true, ip_check: true, name_check: true, wait_for_sync: true },
      ...{ no_install: null, tags: [] },
    },
  },
  {
    client: 'sipgate.ganeti',
    method: 'PUT',
    path: '/2/instances/NAME/modify',
    body: {
      ...{ beparams: {}, hotplug: false, conflicts_check: true, wait_for_sync: true },
      disks: [['add', 1, { size: 16 }]],
      nics: [
        ['modify', 0, { link: 'br0' }],
        ['add', 1, { mode: 'bridged', link: 'br0', mac: 'generate' }],
      ],
    },
  },
  {
    client: 'codefritzel.ganeti',
    method: 'POST',
    path: '/2/instances',
    body: {
      ...{ ip_check: false, name_check: false, start: true, ignore_ipolicy: false },
      ...{ name: 'web.example.com', disk_template: 'file', disks: [{ size: '1G' }], nics: [] },
      ...{ os: 'rapi-os', beparams: { vcpus: 1, memory: 256 }, __version__: 1, mode: 'create' },
    },
  },
  {
    client: 'codefritzel.ganeti',
    method: 'PUT',
    path: '/2/instances/NAME/modify',
    body: { beparams: { memory: 512, maxmem: 512 } },
  },
];
