import { createMetrics } from '../../../metad/control/metrics.ts';
import { createNodeMetrics, type NodeMetricsSources } from '../../../noded/wiring/node-metrics.ts';
import { heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** One value of each kind, so that every metric shows its labels. */
const SOURCES: NodeMetricsSources = {
  activeJobs: () => ['running'],
  instanceStates: () => Promise.resolve(['running']),
  halts: () => ['disk-full'],
  guestsWithoutSecrets: () => 0,
  guestBoots: () => Promise.resolve(['done']),
  metadRestarts: () => 0,
  relays: () => [{ relay: 'api', answers: 3, failures: 1, sent: 10, received: 20 }],
  linkPaths: () => ['direct'],
  cacheBytes: () => Promise.resolve(0),
  places: () =>
    Promise.resolve([{ place: 'disks', path: '/', device: 0, freeBytes: 0, totalBytes: 0 }]),
  promisedBytes: () => Promise.resolve(0),
};

/** Reads the metrics of both daemons from their Prometheus output. */
export async function readMetrics(): Promise<readonly Metric[]> {
  const node = createNodeMetrics(0);
  node.observe(SOURCES);
  node.jobEnded({ opcode: 'NODE_REMOVE', status: 'success' });
  node.stageEnded('image', 0);
  node.rapiAnswered('GET', 200);
  const metad = createMetrics(() => []);
  metad.finished('/', 200, 0);
  metad.refused('rate');
  const texts = [await node.render(), await metad.render()];
  return texts.flatMap(parseMetrics).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function parseMetrics(text: string): readonly Metric[] {
  return [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n(.*)/gm)].map(
    ([, name = '', help = '', type = '', sample = '']) => ({
      name,
      help,
      type,
      labels: [...sample.matchAll(/[{,](\w+)="/g)].flatMap(([, label]) =>
        label === undefined || label === 'le' ? [] : [label],
      ),
    }),
  );
}

export async function metricsPage(): Promise<DocumentedPage> {
  const metrics = await readMetrics();
  return documented('metrics.md', 'Metrics', {
    name: 'gnt-metrics',
    section: 7,
    purpose: 'Prometheus metrics of gnt-noded and gnt-metad',
    blocks: [
      heading('Description'),
      paragraph(
        '`GET /metrics` on the socket of the node API returns the metrics of both daemons in the text ' +
          'format of Prometheus. No label has a value that a guest chooses.',
      ),
      heading('Metrics'),
      terms(
        metrics.map(({ name, help, type, labels }) => [
          name,
          `${help.replace(/\.$/, '')}. Type: ${type}.${
            labels.length === 0 ? '' : ` Labels: ${labels.map((each) => `\`${each}\``).join(', ')}.`
          }`,
        ]),
      ),
    ],
    seeAlso: ['gnt-noded(8)', 'gnt-metad(8)'],
  });
}
