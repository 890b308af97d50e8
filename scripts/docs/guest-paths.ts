import type { Dialect } from '#shared/contract/primitives.ts';
import {
  MAX_BOOT_EVENT_BYTES,
  MAX_BOOT_STATUS_BYTES,
  MAX_GUEST_ATTRIBUTE_BYTES,
  MAX_GUEST_ATTRIBUTES,
  MAX_PASSWORD_BYTES,
  MAX_READ_WAIT_S,
  MAX_READY_BYTES,
} from '../../metad/config/limits.ts';
import { MAX_EVENTS_BODY_BYTES, MAX_EVENTS_PER_BATCH } from '#shared/contract/install-event.ts';
import {
  MAX_ENTRY_OUTPUT_BYTES,
  MAX_LIFECYCLE_EVENTS,
  MAX_LIFECYCLE_EVENTS_BYTES,
  MAX_LIFECYCLE_OUTPUT_BYTES,
} from '#shared/contract/lifecycle.ts';
import { MAX_TOKEN_TTL_S } from '#shared/contract/identity.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';

export interface GuestPath {
  /** Below the folder of the dialect. Capitals stand for one segment, `...` for any number. */
  readonly path: string;
  readonly text: string;
  /** Absent: GET and HEAD. */
  readonly method?: 'POST' | 'PUT' | 'DELETE';
}

export const GUEST_PATHS: Readonly<Record<Dialect, readonly GuestPath[]>> = {
  ganeti: [
    { path: 'meta_data.json', text: 'Name, UUID, NICs, disks, tags and metadata of the instance.' },
    {
      path: 'os/parameters.json',
      text: 'OS parameters: `{"NAME": ["VALUE", "VISIBILITY"]}`. 410 names lost secrets; `?partial=true` returns them as null.',
    },
    { path: 'os/parameters/NAME', text: 'Value of one OS parameter. 410 for a lost secret.' },
    {
      path: 'read',
      text: `Bytes from \`gnt-instance send\`. \`?wait=SECONDS\` waits, at most ${MAX_READ_WAIT_S}. \`?offset=N\` keeps bytes until a higher offset. X-Gnt-Offset is the next offset. 416 for an offset beyond the end.`,
    },
    {
      path: 'write',
      method: 'POST',
      text: 'Bytes for `gnt-instance receive`. 64 KiB per request. 429 while the queue is full.',
    },
    {
      path: 'ready',
      method: 'POST',
      text: `Reports that the guest is ready. Takes the form of phone_home of cloud-init with SSH host keys. At most ${MAX_READY_BYTES / KIB} KiB.`,
    },
    {
      path: 'boot/status',
      method: 'POST',
      text: `status.json of cloud-init. At most ${MAX_BOOT_STATUS_BYTES / KIB} KiB.`,
    },
    {
      path: 'boot/events',
      method: 'POST',
      text: `One event of the reporting webhook of cloud-init. At most ${MAX_BOOT_EVENT_BYTES / KIB} KiB.`,
    },
    { path: 'lifecycle.json', text: 'State of the run lists and the next script to run.' },
    {
      path: 'run-lists/LIST/SCRIPT',
      text: 'One script. LIST is boot, operational or decommission.',
    },
    { path: 'run-lists/LIST.bundle', text: 'All scripts of a list as one document.' },
    {
      path: 'run-lists/LIST.env',
      text: 'Inputs of a list as shell assignments. 410 for lost secrets.',
    },
    { path: 'attachments/NAME', text: 'One attachment of the run lists.' },
    { path: 'attachments.bundle', text: 'All attachments as one document.' },
    {
      path: 'identity/token',
      text: `Identity token: \`?audience=URL[&ttl=SECONDS][&alg=ES256|RS256]\`. At most ${MAX_TOKEN_TTL_S} seconds. 403 without permission, 429 after many new tokens, 503 while the node cannot sign.`,
    },
    { path: 'guest/agent', text: 'The run list agent, a shell script.' },
    { path: 'guest/enable', text: 'A shell script that installs and starts the agent.' },
    {
      path: 'lifecycle/events',
      method: 'POST',
      text: `1 to ${MAX_LIFECYCLE_EVENTS} events of the agent. At most ${MAX_LIFECYCLE_EVENTS_BYTES / KIB} KiB. 400 and 409 refuse the whole batch.`,
    },
    {
      path: 'lifecycle/output',
      method: 'POST',
      text: `Output of a script: \`?entry=ID&offset=N\`. ${MAX_LIFECYCLE_OUTPUT_BYTES / KIB} KiB per request, ${MAX_ENTRY_OUTPUT_BYTES / MIB} MiB per script.`,
    },
    { path: 'boot/...', text: 'Files of the boot environment, in the layout of dr-provision.' },
    { path: 'install/plan.json', text: 'Installation only: the plan for the agent.' },
    {
      path: 'install/hooks.json',
      text: 'Installation only: hook documents. Only the agent reads them; others get 403.',
    },
    {
      path: 'install/events',
      method: 'POST',
      text: `Installation only: 1 to ${MAX_EVENTS_PER_BATCH} events. At most ${MAX_EVENTS_BODY_BYTES / KIB} KiB. 400 refuses the whole batch. 204 confirms that gnt-noded has the events.`,
    },
    { path: 'os/scripts/NAME', text: 'Installation only: one script of the OS definition.' },
    { path: 'os/definition.tar', text: 'Installation only: the folder of the OS definition.' },
    {
      path: 'os/image',
      text: 'Installation only: the image. Supports Range. 502 if the node cannot read it.',
    },
    { path: 'os/package', text: 'Installation only: the personalization package.' },
    { path: 'os/os-install-package', text: 'Installation only: the same as `os/package`.' },
    { path: 'mirror/NAME/...', text: 'Installation only: a package mirror of the cluster.' },
  ],
  ec2: [
    {
      path: 'api/token',
      method: 'PUT',
      text: 'Creates a session token. X-aws-ec2-metadata-token-ttl-seconds: 1 to 21600.',
    },
    { path: 'user-data', text: 'User data of the instance.' },
    { path: 'dynamic/instance-identity/document', text: 'Identity document.' },
    {
      path: 'dynamic/instance-identity/signature',
      text: 'Base64 of the RSA signature of the identity document with SHA-256, if the cluster signs identities.',
    },
    {
      path: 'dynamic/instance-identity/pkcs7',
      text: 'Base64 of a PKCS#7 message that contains the identity document, if the cluster signs identities.',
    },
    { path: 'dynamic/instance-identity/rsa2048', text: 'The same as `pkcs7`.' },
    {
      path: 'meta-data/identity',
      text: 'Identity token: `?aud=URL`. Listings do not show it.',
    },
    {
      path: 'meta-data/iam/info',
      text: 'Role of the instance as an instance profile, if it has a role of AWS.',
    },
    {
      path: 'meta-data/iam/security-credentials/ROLE',
      text: 'Temporary credentials of the role. `Code` is `Success`, `AssumeRoleUnauthorizedAccess` or `Failed`. 429 after many requests.',
    },
    { path: 'meta-data/...', text: 'Facts about the instance in the layout of EC2.' },
  ],
  openstack: [
    { path: 'meta_data.json', text: 'Facts about the instance in the layout of Nova.' },
    { path: 'network_data.json', text: 'NICs, addresses and name servers.' },
    { path: 'user_data', text: 'User data of the instance.' },
    { path: 'vendor_data.json', text: 'Vendor data of the instance.' },
    { path: 'vendor_data2.json', text: 'Always empty.' },
    { path: 'password', text: 'The password that the guest posted.' },
    {
      path: 'password',
      method: 'POST',
      text: `Stores an encrypted password. The first one stays. At most ${MAX_PASSWORD_BYTES} bytes.`,
    },
  ],
  nocloud: [
    { path: 'meta-data', text: 'Facts about the instance as YAML.' },
    { path: 'user-data', text: 'User data of the instance.' },
    { path: 'vendor-data', text: 'Vendor data of the instance.' },
    { path: 'network-config', text: 'Network configuration, version 2 or as given.' },
  ],
  gce: [
    {
      path: 'instance/attributes/NAME',
      text: 'Metadata of the instance, `ssh-keys`, `user-data` and `user-data-encoding`.',
    },
    {
      path: 'instance/guest-attributes/NAMESPACE/KEY',
      text: 'A value that the guest wrote.',
    },
    {
      path: 'instance/guest-attributes/NAMESPACE/KEY',
      method: 'PUT',
      text: `Stores a value of at most ${MAX_GUEST_ATTRIBUTE_BYTES} bytes, at most ${MAX_GUEST_ATTRIBUTES} in all. \`hostkeys/TYPE\` publishes a key of sshd.`,
    },
    {
      path: 'instance/guest-attributes/NAMESPACE/KEY',
      method: 'DELETE',
      text: 'Removes a value that the guest wrote.',
    },
    { path: 'instance/...', text: 'Facts about the instance in the layout of Google.' },
    { path: 'project/...', text: 'The cluster in the place of a project.' },
    { path: 'universe/universe-domain', text: 'Always `googleapis.com`.' },
  ],
};

export function findGuestPath(
  dialect: Dialect,
  path: string,
  method?: GuestPath['method'],
): GuestPath | undefined {
  return GUEST_PATHS[dialect].find(
    (entry) => entry.method === method && patternOf(entry.path).test(path),
  );
}

function patternOf(path: string): RegExp {
  const source = RegExp.escape(path)
    .replace(RegExp.escape('/...'), '(?:/.*)?')
    .replaceAll(/[A-Z]{3,}/g, '[^/]+');
  return new RegExp(`^${source}$`);
}
