/** What became of one attack, as it was measured. */
export interface AttackOutcome {
  readonly attack: string;
  /** In words where the number differs from run to run. */
  readonly answers: number | string;
  readonly framesToNeighbour: number;
  /** As `answers`. */
  readonly datagrams: number | string;
  readonly isHostSame: boolean;
}

/** Markdown, aligned as prettier does it. */
export function attackTable(outcomes: readonly AttackOutcome[]): string {
  const header = [
    'A guest sends',
    'answers',
    'frames to its neighbour',
    'datagrams to daemons',
    "host's addresses, routes, neighbours",
  ];
  const rows = outcomes.map(({ attack, answers, framesToNeighbour, datagrams, isHostSame }) => [
    attack,
    ...[answers, framesToNeighbour, datagrams].map((count) => (count === 0 ? 'none' : `${count}`)),
    isHostSame ? 'unchanged' : 'CHANGED',
  ]);
  const widths = header.map((cell, column) =>
    Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`;
  const rule = line(widths.map((width) => '-'.repeat(width)));
  return `# Attacks on the channel's network, and their outcomes

Two guests on one node, with real TAPs and everything that a careless host might have listening. \`test/noded/network/filter.int.test.ts\`
sends each of these from one of them and writes down what it sees; it fails when this page tells anything else.

${line(header)}${rule}${rows.map(line).join('')}`;
}
