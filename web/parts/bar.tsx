import type { JSX } from 'preact';

interface BarProps {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  /** The numbers in words, such as `3 of 8 GiB`. */
  readonly text: string;
}

/** Shows a part of a whole. */
export function Bar({ label, value, max, text }: BarProps): JSX.Element {
  return (
    <div class="bar">
      <meter aria-label={label} min={0} max={max} value={Math.min(value, max)} />
      <span>{text}</span>
    </div>
  );
}
