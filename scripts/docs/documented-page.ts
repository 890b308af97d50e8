import type { Page } from '../../cluster-cli/manual/page.ts';

/** A page and where it goes. */
export interface DocumentedPage {
  /** Below docs/reference/: `commands/gnt-node.md`. Null: a manual page alone. */
  readonly file: string | null;
  /** Its first heading. */
  readonly title: string;
  readonly page: Page;
  /** Without it, the page is not among the manual pages. */
  readonly isManual: boolean;
}

/** A page of both, or of the Markdown reference alone. */
export function documented(
  file: string,
  title: string,
  page: Page,
  isManual = true,
): DocumentedPage {
  return { file, title, page, isManual };
}
