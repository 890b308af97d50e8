import { CallError } from '../template-error.ts';
import { fixed, variadic, type GoFunction, type Value } from '../values.ts';
import { toFloat, toInt, toText, wrapInt } from './convert.ts';

const ofNumber = (change: (value: number) => number): GoFunction =>
  fixed(['any'], (_call, value) => change(toFloat(value)));
const ofInts = (change: (left: bigint, right: bigint) => bigint): GoFunction =>
  fixed(['any', 'any'], (_call, left, right) => wrapInt(change(toInt(left), toInt(right))));
const foldInts = (change: (left: bigint, right: bigint) => bigint): GoFunction =>
  variadic(['any'], 'any', (_call, [first], others) =>
    others.reduce<bigint>((all, each) => wrapInt(change(all, toInt(each))), toInt(first)),
  );
/** Adds decimals as sprig does: 0.1 and 0.2 make 0.3. */
const foldFloats = (change: (left: number, right: number) => number): GoFunction =>
  variadic(['any'], 'any', (_call, [first], others) =>
    others.reduce<number>((all, each) => decimal(change(all, toFloat(each))), toFloat(first)),
  );
const decimal = (value: number): number => Number(value.toPrecision(15));
const nonZero = (divisor: bigint): bigint => {
  if (divisor === 0n) throw new CallError('division by zero');
  return divisor;
};
const biggest = foldInts((left, right) => (right > left ? right : left));

/** sprig's functions of numbers. They read other values as zero. */
export const numberFunctions: Readonly<Record<string, GoFunction>> = {
  add: variadic([], 'any', (_call, _fixed, values) => {
    return values.reduce<bigint>((sum, value) => wrapInt(sum + toInt(value)), 0n);
  }),
  add1: fixed(['any'], (_call, value) => wrapInt(toInt(value) + 1n)),
  add1f: ofNumber((value) => decimal(value + 1)),
  addf: variadic([], 'any', (_call, _fixed, values) => {
    return values.reduce<number>((sum, value) => decimal(sum + toFloat(value)), 0);
  }),
  biggest,
  ceil: ofNumber(Math.ceil),
  div: ofInts((left, right) => left / nonZero(right)),
  divf: foldFloats((left, right) => {
    if (right === 0) throw new CallError('division by zero');
    return left / right;
  }),
  float64: fixed(['any'], (_call, value) => toFloat(value)),
  floor: ofNumber(Math.floor),
  int: fixed(['any'], (_call, value) => toInt(value)),
  int64: fixed(['any'], (_call, value) => toInt(value)),
  max: biggest,
  maxf: foldFloats(Math.max),
  min: foldInts((left, right) => (right < left ? right : left)),
  minf: foldFloats(Math.min),
  mod: ofInts((left, right) => left % nonZero(right)),
  mul: foldInts((left, right) => left * right),
  mulf: foldFloats((left, right) => left * right),
  round: variadic(['any', 'int'], 'float', (_call, [value, places], [roundsAt = 0.5]) =>
    round(toFloat(value), Number(places), roundsAt),
  ),
  sub: ofInts((left, right) => left - right),
  subf: foldFloats((left, right) => left - right),
  toDecimal: fixed(['any'], ({ spend }, value) => octal(toText(value, spend))),
};

function round(value: number, places: number, roundsAt: number): number {
  const power = 10 ** places;
  const digit = power * value;
  const fraction = digit - Math.trunc(digit);
  return (fraction >= roundsAt ? Math.ceil(digit) : Math.floor(digit)) / power;
}

function octal(text: string): Value {
  return /^[+-]?[0-7]{1,20}$/.test(text) ? BigInt(Number.parseInt(text, 8)) : 0n;
}
