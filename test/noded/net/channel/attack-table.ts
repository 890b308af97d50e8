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

/** Returns the page in Markdown. Cells are not padded: a line has at most 120 characters. */
export function attackTable(outcomes: readonly AttackOutcome[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const header = ['A guest sends', 'Answers', 'To neighbour', 'To daemons', 'Host state'];
  const rows = outcomes.map(({ attack, answers, framesToNeighbour, datagrams, isHostSame }) => [
    attack,
    ...[answers, framesToNeighbour, datagrams].map((count) => (count === 0 ? 'none' : `${count}`)),
    isHostSame ? 'unchanged' : 'CHANGED',
  ]);
  return `# Frames that a guest sends into the channel

Two guests with real TAPs share one node. Every service that a careless host might have listens beside them.
\`test/noded/net/channel/filter.int.test.ts\` sends each frame from one guest and writes this page from its measurements.
The test fails when the page differs.

- *Answers*: packets that came back to the sender.
- *To neighbour*: frames that reached the other guest.
- *To daemons*: datagrams that reached a process of the host.
- *Host state*: addresses, routes and neighbour tables of the channel's namespace.

${line(header)}${line(header.map(() => '---'))}${rows.map(line).join('')}`;
}
