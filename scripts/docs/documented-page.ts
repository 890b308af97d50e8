import type { Page } from '../../cluster-cli/manual/page.ts';

export interface DocumentedPage {
  /** Below docs/reference/: `commands/gnt-node.md`. Null: only a manual page. */
  readonly file: string | null;
  readonly title: string;
  readonly page: Page;
  /** False: the page is not a manual page. */
  readonly isManual: boolean;
}

/** Creates a page for both outputs, or for the Markdown reference only. */
export function documented(
  file: string,
  title: string,
  page: Page,
  isManual = true,
): DocumentedPage {
  return { file, title, page, isManual };
}
