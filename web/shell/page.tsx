import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { showControls } from '../parts/show-controls.ts';

interface PageProps {
  readonly title: string;
  /** Buttons beside the title. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The content of one page. A new page takes the focus for screen readers. */
export function Page({ title, actions, children }: PageProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${showControls(title)} – gnt`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <main id="content">
      <header class="title">
        <h1 ref={heading} tabIndex={-1}>
          {showControls(title)}
        </h1>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </main>
  );
}
