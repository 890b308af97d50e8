import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { backgroundApi, session } from '../../live/session.ts';
import { useLoaded } from '../../live/use-loaded.ts';
import { useTick } from '../../live/use-tick.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { Failure } from '../../parts/failure.tsx';
import { formatBytes, formatNumber } from '../../parts/format.ts';
import { Page } from '../../shell/page.tsx';
import { theme } from '../../shell/theme.ts';
import type { Plot, Series } from './plot.ts';
import { type Reading, ratesOf, readMetrics } from './read-metrics.ts';

const INTERVAL_MS = 5000;
/** One hour. The node keeps no history. */
const MAX_READINGS = 720;
/** The readings of this page, also while another part of it is shown. */
const history = signal<readonly Reading[]>([]);

interface ChartSpec {
  readonly title: string;
  readonly help: string;
  readonly format: (value: number) => string;
  readonly isBinary?: boolean;
  readonly series: (readings: readonly Reading[]) => readonly Series[];
}

const percent = (value: number): string => `${formatNumber(value * 100)} %`;
const perSecond = (value: number): string => `${formatNumber(value)}/s`;

const CHARTS: readonly ChartSpec[] = [
  {
    title: 'Processor',
    help: '100 % is one processor.',
    format: percent,
    series: (readings) => [
      { title: 'gnt-noded', values: ratesOf(readings, ({ nodedCpuS }) => nodedCpuS) },
      { title: 'gnt-metad', values: ratesOf(readings, ({ metadCpuS }) => metadCpuS) },
    ],
  },
  {
    title: 'Requests of guests',
    help: 'To the metadata service.',
    format: perSecond,
    series: (readings) => [
      { title: 'answered', values: ratesOf(readings, ({ requests }) => requests) },
      { title: 'refused by limits', values: ratesOf(readings, ({ refused }) => refused) },
    ],
  },
  {
    title: 'Jobs',
    help: 'Unfinished jobs now, and failed jobs since the start of the daemon.',
    format: formatNumber,
    series: (readings) => [
      { title: 'unfinished', values: readings.map(({ openJobs }) => openJobs) },
      { title: 'failed', values: readings.map(({ failedJobs }) => failedJobs) },
    ],
  },
  {
    title: 'Running instances',
    help: 'On this node.',
    format: formatNumber,
    series: (readings) => [{ title: 'running', values: readings.map(({ running }) => running) }],
  },
  {
    title: 'Free disk space',
    help: 'In the file system of the disks.',
    format: formatBytes,
    isBinary: true,
    series: (readings) => [
      { title: 'free', values: readings.map(({ diskFreeBytes }) => diskFreeBytes) },
    ],
  },
];

/** Draws the metrics of this node, from the moment at which the page was opened. */
export function ChartsPage(): JSX.Element {
  const tick = useTick(INTERVAL_MS);
  const loaded = useLoaded(
    async (stop) => {
      const { data } = await backgroundApi.GET('/metrics', { parseAs: 'text', signal: stop });
      // The document does not describe the text of the metrics.
      const reading = readMetrics(String(data), Date.now());
      history.value = [...history.value, reading].slice(-MAX_READINGS);
      return reading;
    },
    [tick],
  );
  return (
    <Page title={`Charts of ${session.value?.node ?? 'this node'}`}>
      {loaded.error.value !== undefined && <Failure error={loaded.error.value} />}
      <p class="soft">
        A reading every five seconds while this page is open. The browser keeps one hour.
      </p>
      <div class="columns">
        {CHARTS.map((chart) => (
          <Chart key={`${chart.title} ${theme.value}`} chart={chart} />
        ))}
      </div>
      <CommandLine>{'curl --unix-socket /run/gnt/noded.sock http://localhost/metrics'}</CommandLine>
    </Page>
  );
}

function Chart({ chart }: { readonly chart: ChartSpec }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const readings = history.value;
  const series = chart.series(readings);
  const draw = (): void =>
    plot.current?.show(
      readings.map(({ atMs }) => atMs / 1000),
      series,
    );
  useEffect(draw, [readings]);
  useEffect(() => {
    const stop = new AbortController();
    const resize = new ResizeObserver(() => {
      if (place.current !== null) plot.current?.resize(place.current.clientWidth);
    });
    void import('./plot.ts').then(({ createPlot }) => {
      if (stop.signal.aborted || place.current === null) return;
      const titles = series.map(({ title }) => title);
      plot.current = createPlot(place.current, titles, chart);
      resize.observe(place.current);
      plot.current.show(
        history.value.map(({ atMs }) => atMs / 1000),
        chart.series(history.value),
      );
    });
    return () => {
      stop.abort();
      resize.disconnect();
      plot.current?.close();
      plot.current = null;
    };
  }, []);
  const latest = series.map(({ title, values }) => {
    const value = values.at(-1);
    return `${title} ${value == null ? '–' : chart.format(value)}`;
  });
  return (
    <section class="panel chart" aria-label={chart.title}>
      <h2>{chart.title}</h2>
      <p class="help">{chart.help}</p>
      <p>{latest.join(', ')}</p>
      <div ref={place} role="img" aria-label={`${chart.title} over time: ${latest.join(', ')}`} />
    </section>
  );
}
