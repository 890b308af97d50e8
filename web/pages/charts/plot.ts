import uPlot from 'uplot';

export interface Series {
  readonly title: string;
  readonly values: readonly (number | null)[];
}

export interface Plot {
  readonly show: (timesS: readonly number[], series: readonly Series[]) => void;
  readonly resize: (width: number) => void;
  readonly close: () => void;
}

interface PlotOptions {
  readonly format: (value: number) => string;
  /** The values are bytes, whose round numbers are powers of two. */
  readonly isBinary?: boolean;
}

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, exponent) => 2 ** exponent);
const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const HEIGHT = 180;
/** Pixels for the words of the vertical axis. */
const AXIS_WIDTH = 72;
const SERIES_COLOURS = ['--accent', '--warn'];

/** Draws a chart in an element, with the colours of the page. */
export function createPlot(
  place: HTMLElement,
  titles: readonly string[],
  { format, isBinary = false }: PlotOptions,
): Plot {
  const colour = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name);
  const axis = {
    stroke: () => colour('--soft'),
    grid: { stroke: () => colour('--line'), width: 1 },
  };
  const chart = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: titles.length > 1, live: false },
      cursor: { show: false },
      scales: { y: { range: (_chart, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        {
          ...axis,
          ticks: { show: false },
          space: 80,
          values: (_chart, splits) => splits.map((atS) => time.format(atS * 1000)),
        },
        {
          ...axis,
          ticks: { show: false },
          size: AXIS_WIDTH,
          ...(isBinary && { incrs: POWERS_OF_TWO }),
          values: (_chart, splits) => splits.map((value) => format(value)),
        },
      ],
      series: [
        {},
        ...titles.map((label, index) => ({
          label,
          stroke: () => colour(SERIES_COLOURS[index] ?? '--accent'),
          width: 2,
          points: { show: false },
          value: (_chart: uPlot, value: number | null) => (value === null ? '–' : format(value)),
        })),
      ],
    },
    [[], ...titles.map(() => [])],
    place,
  );
  return {
    show: (timesS, series) =>
      chart.setData([[...timesS], ...series.map(({ values }) => [...values])]),
    resize: (width) => chart.setSize({ width, height: HEIGHT }),
    close: () => chart.destroy(),
  };
}
