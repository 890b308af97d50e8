/** Converts a label to a sentence with a capital and a full stop. */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  const isWord = /^[a-z]+(?=[\s,;]|$)/.test(trimmed);
  const capital = isWord ? `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}` : trimmed;
  return /[.!?:]$/.test(trimmed) ? capital : `${capital}.`;
}
