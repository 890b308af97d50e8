import type { JSX } from 'preact';
import { useText } from '../../live/use-stream.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { Failure } from '../../parts/failure.tsx';
import { commandLine } from '../../parts/quote.ts';
import { Text } from '../../parts/text.tsx';
import type { SectionProps } from './instance.tsx';

export function AuditSection({ instance: { name } }: SectionProps): JSX.Element {
  const { value: text, error } = useText(
    `/v1/instances/${encodeURIComponent(name)}/audit?follow=1`,
  );
  return (
    <>
      {error.value !== undefined && <Failure error={error.value} />}
      <pre class="log" tabIndex={0} aria-label="Audit log">
        <Text>{text.value === '' ? 'No entries yet.' : text.value}</Text>
      </pre>
      <CommandLine>{commandLine('gnt-instance', 'audit', name)}</CommandLine>
    </>
  );
}
