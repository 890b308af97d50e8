/**
 * Formats a float64 as Go's strconv.
 * @param precision digits, or -1 for the fewest that identify the number
 */
export function formatFloat(value: number, form: 'e' | 'f' | 'g', precision: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const magnitude = Math.abs(value);
  switch (form) {
    case 'e':
      return sign + exponential(magnitude, precision);
    case 'f':
      return sign + (precision < 0 ? shortestFixed(magnitude) : exactFixed(magnitude, precision));
    case 'g':
      return sign + general(magnitude, precision);
  }
}

function exponential(magnitude: number, precision: number): string {
  const text = precision < 0 ? magnitude.toExponential() : exactExponential(magnitude, precision);
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** Formats like toExponential, but rounds half to even. */
function exactExponential(magnitude: number, precision: number): string {
  if (magnitude === 0) return magnitude.toExponential(precision);
  const exponent = Number(magnitude.toExponential().split('e')[1]);
  const digits = String(roundScaled(magnitude, precision - exponent));
  // Rounding up can make one digit more: 9.96 is 1.0e+01.
  const shown = digits.length > precision + 1 ? exponent + 1 : exponent;
  const fraction = precision === 0 ? '' : `.${digits.slice(1, precision + 1)}`;
  return `${digits.charAt(0)}${fraction}e${shown < 0 ? '-' : '+'}${Math.abs(shown)}`;
}

function general(magnitude: number, precision: number): string {
  if (magnitude === 0) return '0';
  const digits = precision === 0 ? 1 : precision;
  const text = exponential(magnitude, digits < 0 ? -1 : digits - 1);
  const [mantissa = '', exponentText = '0'] = text.split('e');
  const exponent = Number(exponentText);
  const kept = withoutEndZeros(mantissa);
  const count = kept.replace('.', '').length;
  // Six for the shortest form; else the given precision, or the number of digits.
  const fits = digits > count && count > exponent ? count : digits;
  if (exponent < -4 || exponent >= (digits < 0 ? 6 : fits)) return `${kept}e${exponentText}`;
  return place(kept.replace('.', ''), exponent);
}

function withoutEndZeros(mantissa: string): string {
  if (!mantissa.includes('.')) return mantissa;
  let end = mantissa.length;
  while (mantissa.charAt(end - 1) === '0') end -= 1;
  return mantissa.slice(0, mantissa.charAt(end - 1) === '.' ? end - 1 : end);
}

function place(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const fraction = digits.slice(exponent + 1);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

function shortestFixed(magnitude: number): string {
  if (magnitude === 0) return '0';
  const [mantissa = '', exponent = '0'] = magnitude.toExponential().split('e');
  return place(mantissa.replace('.', ''), Number(exponent));
}

function exactFixed(magnitude: number, precision: number): string {
  const digits = String(roundScaled(magnitude, precision)).padStart(precision + 1, '0');
  const point = digits.length - precision;
  return precision === 0 ? digits : `${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** Multiplies by a power of ten and rounds as Go does: the exact value, half to even. */
function roundScaled(magnitude: number, power: number): bigint {
  const [numerator, denominator] = asFraction(magnitude);
  const scale = 10n ** BigInt(Math.abs(power));
  const [above, below] =
    power >= 0 ? [numerator * scale, denominator] : [numerator, denominator * scale];
  const whole = above / below;
  const twice = (above % below) * 2n;
  return twice > below || (twice === below && whole % 2n === 1n) ? whole + 1n : whole;
}

function asFraction(magnitude: number): readonly [bigint, bigint] {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, magnitude);
  const raw = bits.getBigUint64(0);
  const biased = Number(raw >> 52n);
  const fraction = raw & ((1n << 52n) - 1n);
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n);
  const exponent = (biased === 0 ? 1 : biased) - 1075;
  return exponent >= 0 ? [mantissa << BigInt(exponent), 1n] : [mantissa, 1n << BigInt(-exponent)];
}
