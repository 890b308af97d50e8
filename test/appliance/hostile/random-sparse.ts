import { createSeededRandom, type SeededRandom } from '../../lab/seeded-random.ts';
import { END, entry, header, pax } from './tar-bytes.ts';

const LENGTHS = [0, 5, 512, 513, 1000, 1024];
const CONTENT_MAPS = ['1\n0\n5\n', '1\n0\n512\n', '0\n', '2\n0\n5\n512\n5\n'];

/** Sparse files in every format, mostly with maps that differ from the size, and plain ones. */
export function randomSparseArchive(seed: number): Buffer {
  const random = createSeededRandom(seed);
  const parts = Array.from({ length: 1 + random.below(4) }, (_, index) => [
    ...(random.below(4) > 0 ? [pax(randomRecords(random))] : []),
    randomEntry(random, `n${index}`),
  ]);
  return Buffer.concat([...parts.flat(), entry({ name: 'last' }, 'last'), END]);
}

function randomRecords(random: SeededRandom): (readonly [string, string])[] {
  const number = (): string => String(random.pick(LENGTHS));
  const forms: readonly (readonly (readonly [string, string])[])[] = [
    [
      ['size', number()],
      ['numblocks', '1'],
      ['map', `0,${number()}`],
    ],
    [
      ['major', '1'],
      ['minor', '0'],
      ['realsize', number()],
    ],
    [
      ['size', number()],
      ['numblocks', random.pick(['0', '1', '2'])],
      ['offset', '0'],
      ['numbytes', number()],
      ['offset', '512'],
      ['numbytes', number()],
    ],
    [],
  ];
  const records = random
    .pick(forms)
    .map(([key, value]): readonly [string, string] => [`GNU.sparse.${key}`, value]);
  if (random.below(5) === 0) records.splice(random.below(records.length + 1), 1);
  if (random.below(8) === 0) records.push(['size', number()]);
  if (records.length === 0) records.push(['comment', 'x']);
  return random.below(8) === 0 ? random.shuffle(records) : records;
}

function randomEntry(random: SeededRandom, name: string): Buffer {
  const type = random.pick(['0', '0', '0', 'S', 'S', '7', '5', '2', 'D', '\0']);
  const isOld = type === 'S' && random.below(4) > 0;
  const fields = {
    ...{ name, type, link: 'x' },
    magic: isOld ? ('gnu' as const) : random.pick(['ustar', 'ustar', 'gnu', 'none'] as const),
    ...(random.below(12) === 0 && { size: random.pick(LENGTHS) }),
    ...(type === 'S' && { patch: randomOldMap(random) }),
  };
  if (!'0\x007DS'.includes(type)) return header({ size: 0, ...fields });
  const plain = Buffer.alloc(random.pick(LENGTHS), 'z');
  if (random.below(2) === 0) return entry(fields, plain);
  const map = Buffer.from(random.pick(CONTENT_MAPS).padEnd(512, '\0'));
  return entry(fields, Buffer.concat([map, plain]));
}

function randomOldMap(random: SeededRandom): (readonly [number, Buffer])[] {
  const octal = (value: number): Buffer => Buffer.from(`${value.toString(8).padStart(11, '0')}\0`);
  const stretches = Array.from({ length: random.below(5) }, (_, index) => [
    octal(index * 2048),
    random.below(6) === 0 ? Buffer.alloc(12) : octal(random.pick(LENGTHS)),
  ]);
  return [
    [386, Buffer.concat(stretches.flat())],
    [482, Buffer.from([random.below(4) === 0 ? 1 : 0])],
    [483, octal(random.pick([0, 512, 9000]))],
  ];
}
