/** Splits `debootstrap+bookworm` at its first plus; what the parts may be is for others to say. */
export function splitOsName(text: string): {
  readonly name: string;
  readonly variant: string | null;
} {
  const plus = text.indexOf('+');
  if (plus === -1) return { name: text, variant: null };
  return { name: text.slice(0, plus), variant: text.slice(plus + 1) };
}
