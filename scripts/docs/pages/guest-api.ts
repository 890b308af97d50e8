import { AGENT_PROOF_HEADER } from '#shared/contract/install-event.ts';
import { dialect, type Dialect } from '#shared/contract/primitives.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import {
  DEFAULT_CHANGE_WAIT_S,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_BODY_BYTES,
  MAX_CHANGE_WAIT_S,
  MAX_HEADER_BYTES,
  MAX_QUEUE_BYTES,
  MAX_UNANSWERED_PER_CONNECTION,
  BODY_TIMEOUT_MS,
} from '../../../metad/config/limits.ts';
import {
  EC2_VERSIONS,
  GANETI_VERSIONS,
  OPENSTACK_VERSIONS,
} from '../../../metad/dialects/versions.ts';
import { type Block, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';
import { GUEST_PATHS } from '../guest-paths.ts';

const DIALECTS: Readonly<Record<Dialect, { readonly base: string; readonly text: string }>> = {
  ganeti: {
    base: '/ganeti/VERSION',
    text: `Ganeti's layout with additions. VERSION is \`latest\` or ${list(GANETI_VERSIONS)}.`,
  },
  ec2: {
    base: '/VERSION',
    text: `EC2. VERSION is \`latest\` or ${list(EC2_VERSIONS)}. Later dates are the newest version.`,
  },
  openstack: {
    base: '/openstack/VERSION',
    text: `OpenStack. VERSION is \`latest\` or ${list(OPENSTACK_VERSIONS)}. \`/openstack/content/0000\` holds the NICs as Debian's interfaces(5).`,
  },
  nocloud: { base: '/nocloud', text: 'The seed of NoCloud of cloud-init. It has no versions.' },
  gce: {
    base: '/computeMetadata/v1',
    text: 'Google Compute Engine, with the header `Metadata-Flavor: Google`. `?recursive=true` returns a folder as JSON, or with `&alt=text` as lines of path and value; `?alt=json` returns a value. The channel has a DNS server for `metadata.google.internal`.',
  },
};

export function guestApiPage(): DocumentedPage {
  return documented('guest-endpoints.md', 'Guest endpoints', {
    name: 'gnt-guest-api',
    section: 7,
    purpose: 'paths, limits and answers of the metadata service',
    blocks: [
      heading('Description'),
      paragraph(
        `gnt-metad answers each instance on \`${SERVICE_URL}\` and \`http://[fe80::a9fe:a9fe]\`. ` +
          'The channel tells which instance asks. A request that passed a proxy is refused with 403. ' +
          '`--dialects` of an instance chooses the dialects.',
      ),
      ...dialect.options.flatMap(describeDialect),
      heading('Relays'),
      paragraph(
        '`/relay/NAME/PATH` passes a request of any method on to the server of a relay, with a credential of the node, if the instance may use the relay. The answer is that of the server, or a refusal with 403, 404, 405, 410, 413, 429, 502, 503 or 504.',
      ),
      heading('Waiting for changes'),
      paragraph(
        `\`?wait_for_change=true&last_etag=ETAG&timeout_sec=SECONDS\` on a readable path returns when the content changes. Default: ${DEFAULT_CHANGE_WAIT_S} seconds, maximum ${MAX_CHANGE_WAIT_S}.`,
      ),
      heading('Answers'),
      terms([
        ['200, 206', 'The content. Answers with secrets carry `Cache-Control: no-store`.'],
        ['204', 'The report was accepted.'],
        ['304', 'The content has the ETag of `If-None-Match`.'],
        ['400', 'The request is malformed. The body names the field.'],
        ['401', 'The instance needs a session token, and the request has none.'],
        ['403', 'The source address, a forwarding header or the proof of the agent is wrong.'],
        ['404', 'The path does not exist.'],
        ['405', 'The path does not support the method.'],
        ['408', 'The headers or the body took too long.'],
        ['409', 'Another report is in progress, or an event contradicts the state.'],
        ['410', 'A secret is lost. The body names it.'],
        ['413, 431', 'The body or the headers are too large.'],
        ['416', 'The range or offset is beyond the end.'],
        ['429', 'The rate limit is exceeded. `Retry-After` says when to try again.'],
        [
          '502',
          'The node cannot provide the image, package or mirror, or the server of a relay failed.',
        ],
        ['504', 'The server of a relay did not answer in time.'],
      ]),
      heading('Limits of an instance'),
      terms([
        [
          'Requests',
          `${DEFAULT_LIMITS.requestsPerSecond} per second, ${DEFAULT_LIMITS.burst} at once. Set by \`-H metadata_request_rate\` and \`-H metadata_request_burst\`.`,
        ],
        ['Connections', `${DEFAULT_LIMITS.connections}. Set by \`-H metadata_connections\`.`],
        ['Unanswered requests', `${MAX_UNANSWERED_PER_CONNECTION} per connection.`],
        ['Headers', `${MAX_HEADER_BYTES / KIB} KiB within ${HEADERS_TIMEOUT_MS / 1000} seconds.`],
        ['Body', `${MAX_BODY_BYTES / KIB} KiB within ${BODY_TIMEOUT_MS / 1000} seconds.`],
        ['Idle connection', `${KEEP_ALIVE_TIMEOUT_MS / 1000} seconds.`],
        ['Queue in each direction', `${MAX_QUEUE_BYTES / MIB} MiB.`],
      ]),
      heading('Headers'),
      terms([
        ['X-aws-ec2-metadata-token', 'Session token, required with `--metadata-token required`.'],
        [AGENT_PROOF_HEADER, 'Proof of the agent for `install/hooks.json`.'],
      ]),
    ],
    seeAlso: ['gnt-metad(8)', 'gnt-parameters(7)', 'gnt-installation(7)'],
  });
}

function describeDialect(name: Dialect): readonly Block[] {
  const { base, text } = DIALECTS[name];
  return [
    heading(`Dialect ${name}`),
    paragraph(text),
    terms(
      GUEST_PATHS[name].map(
        (entry) => [`${entry.method ?? 'GET'} ${base}/${entry.path}`, entry.text] as const,
      ),
    ),
  ];
}

function list(versions: readonly string[]): string {
  return versions.map((version) => `\`${version}\``).join(', ');
}
