/* eslint-disable max-lines -- a table of archives */
import { base256, END, entry, gnuLong, header, padded, pax } from './tar-bytes.ts';

// One table with a row for each attack, in one file so that a missing attack is visible.

/** The verdict on an archive: the same as GNU tar's, or a refusal with this message. */
export type Verdict = 'as-tar' | { readonly code: string; readonly says: RegExp };

export interface HostileArchive {
  readonly name: string;
  readonly bytes: Buffer;
  readonly verdict: Verdict;
}

const cat = (...parts: readonly Buffer[]): Buffer => Buffer.concat(parts);
const file = (name: string | Buffer, content = 'content'): Buffer => entry({ name }, content);
const directory = (name: string): Buffer => entry({ name, type: '5', mode: 0o755 });
const link = (name: string, target: string, type = '2'): Buffer =>
  entry({ name, type, link: target });
const sparseMap = (...stretches: readonly (readonly [number, number])[]): Buffer =>
  Buffer.from(
    stretches
      .flat()
      .map((value) => `${value.toString(8).padStart(11, '0')}\0`)
      .join(''),
  );
const unsafe = (says: RegExp): Verdict => ({ code: 'PACKAGE_UNSAFE', says });
const invalid = (says: RegExp): Verdict => ({ code: 'PACKAGE_INVALID', says });
const bytes = (...values: number[]): Buffer => Buffer.from(values);

/** Bytes between the entries `first` and `last`, which show whether a reader loses its place. */
const cases: readonly (readonly [string, Buffer, Verdict])[] = [
  // Numbers.
  ...['4.5', '0x5', '5e0', '+5', ' 5', '', '-5', '1e3', '99999999999999999999'].map(
    (size) =>
      [
        `pax size ${JSON.stringify(size)}`,
        cat(pax([['size', size]]), file('target', '12345')),
        invalid(/"target": its size/),
      ] as const,
  ),
  [
    'pax size 5',
    cat(
      pax([['size', '5']]),
      entry({ name: 't', size: 0 }),
      entry({}, '').subarray(0, 0),
      Buffer.from('12345'.padEnd(512, '\0')),
    ),
    'as-tar',
  ],
  ['pax uid of 2^32', cat(pax([['uid', '4294967296']]), file('t')), invalid(/"t": its uid/)],
  [
    'pax gid that is no owner',
    cat(pax([['gid', '4294967295']]), file('t')),
    invalid(/"t": its gid/),
  ],
  ['header uid of 2^32', entry({ name: 't', uid: base256(2n ** 32n, 8) }), invalid(/"t": its uid/)],
  ['header uid in base 256', entry({ name: 't', uid: base256(3_000_000_000n, 8) }), 'as-tar'],
  [
    'header size that is negative',
    header({ name: 't', size: base256(-1n, 12) }),
    invalid(/"t": its size/),
  ],
  [
    'header size of 2^80',
    header({ name: 't', size: base256(2n ** 80n, 12) }),
    invalid(/"t": its size/),
  ],
  [
    'header size in letters',
    header({ name: 't', size: Buffer.from('0000000000x\0') }),
    invalid(/"t": its size/),
  ],
  [
    'header size after a NUL',
    header({ name: 't', size: Buffer.from('\x000000000012') }),
    invalid(/"t": its size/),
  ],
  ['time before 1970 in base 256', entry({ name: 't', mtime: base256(-86_400n, 12) }), 'as-tar'],
  ['time before 1970 in pax', cat(pax([['mtime', '-86400.5']]), file('t')), 'as-tar'],
  ['time with nanoseconds', cat(pax([['mtime', '1234567890.123456789']]), file('t')), 'as-tar'],
  ['time that is none', cat(pax([['mtime', 'yesterday']]), file('t')), invalid(/"t": its mtime/)],
  [
    'sparse map with a fraction',
    cat(
      pax([
        ['GNU.sparse.map', '0,1.5'],
        ['GNU.sparse.size', '9'],
      ]),
      file('t'),
    ),
    invalid(/"t": its GNU\.sparse\.map/),
  ],
  [
    'sparse map out of order',
    cat(
      pax([
        ['GNU.sparse.map', '600,5,0,5'],
        ['GNU.sparse.size', '700'],
        ['GNU.sparse.name', 't'],
      ]),
      file('x', '1234567890'),
    ),
    invalid(/GNU.sparse/),
  ],
  [
    'checksum of signed bytes',
    entry({ name: bytes(0x66, 0xfc), checksum: 'signed' }, 'x'),
    'as-tar',
  ],
  [
    'checksum that is wrong',
    entry({ name: 't', checksum: 'wrong' }, 'x'),
    invalid(/damaged header/),
  ],
  // Names.
  [
    'two names that are no UTF-8',
    cat(file(bytes(0x61, 0xff), '1'), file(bytes(0x61, 0xfe), '2')),
    'as-tar',
  ],
  ['pax name that is no UTF-8', cat(pax([['path', bytes(0x61, 0xff)]]), file('x')), 'as-tar'],
  [
    'GNU long name that is no UTF-8',
    cat(gnuLong('L', Buffer.alloc(120, 0xe9)), file('x')),
    'as-tar',
  ],
  [
    'link target that is no UTF-8',
    cat(pax([['linkpath', bytes(0x61, 0xff)]]), link('t', 'x')),
    'as-tar',
  ],
  ['name in UTF-8', cat(pax([['path', 'grüße']]), file('x')), 'as-tar'],
  ['name with line feeds and escapes', file('a\n\x1b[31mb'), 'as-tar'],
  [
    'name of 20,000 levels',
    cat(pax([['path', 'd/'.repeat(20_000)]]), directory('d')),
    invalid(/longer than 4095 bytes/),
  ],
  ['name of 500 levels', cat(pax([['path', 'd/'.repeat(500)]]), directory('d')), 'as-tar'],
  [
    'part of a name of 256 bytes',
    cat(pax([['path', 'x'.repeat(256)]]), file('x')),
    invalid(/longer than 255 bytes/),
  ],
  ['name with a NUL', cat(pax([['path', 'a\0b']]), file('x')), unsafe(/contains a NUL/)],
  ['empty name', file(''), invalid(/"": its name is empty/)],
  ['absolute name', file('/etc/x'), unsafe(/"\/etc\/x": its name is absolute/)],
  ['absolute pax name', cat(pax([['path', '/etc/x']]), file('x')), unsafe(/is absolute/)],
  ['absolute GNU long name', cat(gnuLong('L', '/etc/x'), file('x')), unsafe(/is absolute/)],
  [
    'absolute sparse name',
    cat(
      pax([
        ['GNU.sparse.name', '/x'],
        ['GNU.sparse.map', '0,7'],
        ['GNU.sparse.size', '7'],
      ]),
      file('x'),
    ),
    unsafe(/is absolute/),
  ],
  ['name that climbs', file('a/../../x'), unsafe(/contains "\.\."/)],
  ['prefix that climbs', entry({ name: 'x', prefix: '../..' }), unsafe(/contains "\.\."/)],
  [
    'safe pax name before a GNU name that climbs',
    cat(gnuLong('L', '../x'), pax([['path', 'safe']]), file('x')),
    unsafe(/contains "\.\."/),
  ],
  ['name of our own', cat(file('.gnt-overlay-entry', '1'), file('t', '2')), 'as-tar'],
  [
    'the root with the packer as owner',
    cat(entry({ name: './', type: '5', uid: 1234, mode: 0o700 }), file('./t')),
    'as-tar',
  ],
  // Types, and content where none belongs.
  ['device', entry({ name: 'sda', type: '4' }), unsafe(/"sda": it is a block device/)],
  ['character device', entry({ name: 'null', type: '3' }), unsafe(/it is a character device/)],
  ['named pipe', entry({ name: 'p', type: '6' }), unsafe(/it is a named pipe/)],
  ['unknown type', entry({ name: 't', type: 'Z' }), unsafe(/it is an entry of type "Z"/)],
  ['volume label', entry({ name: 'label', type: 'V' }), unsafe(/volume label/)],
  ['directory with a size', header({ name: 'd/', type: '5', size: 4096, mode: 0o755 }), 'as-tar'],
  [
    'symbolic link with a size',
    header({ name: 's', type: '2', link: 'first', size: 512 }),
    'as-tar',
  ],
  ['hard link with a size', header({ name: 'h', type: '1', link: 'first', size: 512 }), 'as-tar'],
  [
    'hard link with a size in pax',
    cat(pax([['size', '512']]), header({ name: 'h', type: '1', link: 'first' })),
    'as-tar',
  ],
  ['file named as a directory', entry({ name: 'd/', magic: 'none' }), 'as-tar'],
  [
    'file named as a directory, with content',
    entry({ name: 'd/', magic: 'none' }, 'x'),
    invalid(/a directory name, but it has content/),
  ],
  ['contiguous file', entry({ name: 't', type: '7' }, 'x'), 'as-tar'],
  [
    'directory with a list of what it held',
    entry({ name: 'd/', type: 'D', magic: 'gnu' }, 'Yfirst\0\0'),
    'as-tar',
  ],
  // Links.
  [
    'link that leads out',
    link('a/out', '../../outside'),
    unsafe(/"a\/out": its link to .* leads out/),
  ],
  [
    'absolute link, and an entry through it',
    cat(directory('real'), link('door', '/real'), file('door/x')),
    'as-tar',
  ],
  [
    'absolute link to nowhere, and an entry through it',
    cat(link('door', '/nowhere'), file('door/x')),
    invalid(/door\/x/),
  ],
  [
    'links that form a circle, and an entry through them',
    cat(link('a', 'b'), link('b', 'a'), file('a/x')),
    invalid(/a\/x: .*symbolic links/),
  ],
  ['hard link to nothing', link('h', 'nothing', '1'), invalid(/'nothing'/)],
  [
    'hard link to a directory',
    cat(directory('d'), link('h', 'd', '1')),
    invalid(/h: Cannot hard link/),
  ],
  ['hard link to the root', link('h', '.', '1'), invalid(/h/)],
  [
    'hard link out',
    link('h', '../etc/passwd', '1'),
    unsafe(/"h": it links to "\.\.\/etc\/passwd"/),
  ],
  ['absolute hard link', link('h', '/etc/passwd', '1'), unsafe(/"h": it links to "\/etc\/passwd"/)],
  ['hard link to a symbolic link', cat(link('s', 'first'), link('h', 's', '1')), 'as-tar'],
  ['hard link to itself', cat(file('t'), link('t', 't', '1')), 'as-tar'],
  [
    'directory on a dangling link',
    cat(link('d', 'nowhere'), directory('d'), file('d/x')),
    'as-tar',
  ],
  [
    'directory on a link to a directory',
    cat(directory('real'), link('d', 'real'), directory('d'), file('d/x')),
    'as-tar',
  ],
  // Replacing.
  ['file in place of an empty directory', cat(directory('t'), file('t')), 'as-tar'],
  [
    'file in place of a directory that is not empty',
    cat(file('t/x'), file('t')),
    invalid(/t: Cannot open/),
  ],
  ['directory in place of a file', cat(file('t'), directory('t'), file('t/x')), 'as-tar'],
  ['the same file twice', cat(file('t', '1'), file('t', '2')), 'as-tar'],
  [
    'file over one of two hard links',
    cat(file('t', '1'), link('h', 't', '1'), file('t', '2')),
    'as-tar',
  ],
  [
    'directory that a link replaces, and a time for it',
    cat(entry({ name: 'd', type: '5', mode: 0o755, mtime: 5 }), link('d', '/')),
    'as-tar',
  ],
  // Attributes.
  [
    'ACL without its extended attribute',
    cat(
      pax([['SCHILY.acl.access', 'user::rw-,user:1234:r--,group::r--,mask::r--,other::---']]),
      file('t'),
    ),
    'as-tar',
  ],
  [
    'default ACL',
    cat(
      pax([['SCHILY.acl.default', 'user::rwx,user:1234:r-x,group::r-x,mask::r-x,other::---']]),
      directory('d'),
    ),
    'as-tar',
  ],
  [
    'ACL that is none',
    cat(pax([['SCHILY.acl.access', 'nobody:knows']]), file('t')),
    invalid(/t: .*acl/),
  ],
  [
    'binary attribute',
    cat(pax([['SCHILY.xattr.user.b', bytes(0xff, 0, 0x0a, 0x3d)]]), file('t')),
    'as-tar',
  ],
  [
    'attribute of 70 KB',
    cat(pax([['SCHILY.xattr.user.big', Buffer.alloc(70_000, 1)]]), file('t')),
    invalid(/user\.big.* extended attribute/),
  ],
  [
    'attribute of a space that does not exist',
    cat(pax([['SCHILY.xattr.nowhere.x', 'y']]), file('t')),
    'as-tar',
  ],
  ['unknown keyword', cat(pax([['VENDOR.thing', 'y']]), file('t')), 'as-tar'],
  // Headers of headers.
  ['global comment', cat(pax([['comment', 'abc']], 'g'), file('t')), 'as-tar'],
  [
    'global name',
    cat(pax([['path', 'all-the-same']], 'g'), file('t')),
    invalid(/global header that sets path/),
  ],
  [
    'global size',
    cat(pax([['size', '1']], 'g'), file('t')),
    invalid(/global header that sets size/),
  ],
  [
    'two pax headers for one entry',
    cat(pax([['path', 'a']]), pax([['path', 'b']]), file('t')),
    invalid(/two pax headers/),
  ],
  [
    'two long names for one entry',
    cat(gnuLong('L', 'a'), gnuLong('L', 'b'), file('t')),
    invalid(/two long names/),
  ],
  [
    'pax record that ends too late',
    cat(entry({ name: 'p', type: 'x' }, '99 path=a\n'), file('t')),
    invalid(/damaged pax header/),
  ],
  [
    'pax record of no length',
    cat(entry({ name: 'p', type: 'x' }, '0 path=a\n'), file('t')),
    invalid(/damaged pax header/),
  ],
  [
    'long name of 5 MB',
    cat(gnuLong('L', 'x'.repeat(5_000_000)), file('t')),
    invalid(/a header of 5000001 bytes/),
  ],
  [
    'long name of 8 GB',
    cat(header({ name: 'x', type: 'L', size: 8 * 1024 ** 3 - 1 }), file('t')),
    invalid(/a header of \d+ bytes/),
  ],
  ['pax header for nothing', cat(pax([['path', 'x']]), END), invalid(/a header without its entry/)],
  [
    'old sparse file with an extension',
    cat(
      header({
        name: 's',
        type: 'S',
        magic: 'gnu',
        size: 4 * 512,
        patch: [
          [386, sparseMap([0, 512], [4096, 512], [8192, 512], [12_288, 512])],
          [482, bytes(1)],
          [483, Buffer.from('00000040000\0')],
        ],
      }),
      padded(sparseMap([16_384, 0])),
      Buffer.alloc(4 * 512, 'x'),
    ),
    'as-tar',
  ],
  [
    'old sparse file that claims an extension it has no need of',
    header({ name: 's', type: 'S', magic: 'gnu', patch: [[482, bytes(1)]] }),
    invalid(/a sparse map that continues/),
  ],
  [
    'sparse map that claims a billion stretches',
    cat(
      pax([
        ['GNU.sparse.major', '1'],
        ['GNU.sparse.minor', '0'],
        ['GNU.sparse.name', 't'],
        ['GNU.sparse.realsize', '5'],
      ]),
      file('t', '1000000000\n0\n5\n'),
    ),
    invalid(/./),
  ],
];

/**
 * A device, which no package may contain. GNU tar would find it if it took another content length
 * for the previous entry than its size.
 */
const hidden = entry({ name: 'hidden', type: '3' });
/** Content that begins with a block for a map, followed by an entry. */
const cover = (first: Buffer): Buffer => entry({ name: 'cover' }, cat(first, hidden));

/** Maps of holes that differ from their entry's size. */
const lyingMaps: readonly (readonly [string, Buffer])[] = [
  [
    'in the pax header',
    cat(
      pax([
        ['GNU.sparse.size', '512'],
        ['GNU.sparse.numblocks', '1'],
        ['GNU.sparse.map', '0,512'],
      ]),
      entry({ name: 's', size: 0 }),
      cover(Buffer.alloc(0)),
    ),
  ],
  [
    'of which only the size is there',
    cat(
      pax([['GNU.sparse.realsize', '512']]),
      entry({ name: 's', size: 0 }),
      cover(Buffer.alloc(0)),
    ),
  ],
  [
    'whose number comes last',
    cat(
      pax([
        ['GNU.sparse.size', '0'],
        ['GNU.sparse.map', '0,0'],
        ['GNU.sparse.numblocks', '1'],
      ]),
      entry({ name: 's' }, hidden),
    ),
  ],
  [
    'in the content',
    cat(
      pax([
        ['GNU.sparse.major', '1'],
        ['GNU.sparse.minor', '0'],
        ['GNU.sparse.realsize', '512'],
      ]),
      entry({ name: 's' }, '1\n0\n512\n'),
      cover(Buffer.alloc(0)),
    ),
  ],
  [
    'of an old sparse file',
    cat(
      header({
        ...{ name: 's', type: 'S', magic: 'gnu', size: 0 },
        patch: [
          [386, sparseMap([0, 512])],
          [483, Buffer.from('00000001000\0')],
        ],
      }),
      cover(Buffer.alloc(0)),
    ),
  ],
  [
    'of an old sparse file that ends before its last stretch',
    cat(
      header({
        ...{ name: 's', type: 'S', magic: 'gnu', size: 0 },
        patch: [
          [386 + 3 * 24, sparseMap([0, 0])],
          [482, bytes(1)],
        ],
      }),
      hidden,
    ),
  ],
  [
    'of an old sparse file in a header of the wrong kind',
    cat(
      pax([['comment', 'x']]),
      header({ name: 's', type: 'S', size: 512, patch: [[386, sparseMap([0, 512])]] }),
      hidden,
    ),
  ],
];

export const hostileArchives: readonly HostileArchive[] = [
  ...[
    ...cases,
    ...lyingMaps.map(
      ([name, middle]) => [`lying map ${name}`, middle, invalid(/a sparse map/)] as const,
    ),
  ].map(([name, middle, verdict]) => ({
    name,
    verdict,
    bytes: cat(file('first', '1'), middle, file('last', '9'), END),
  })),
  { name: 'no end mark', bytes: file('t'), verdict: invalid(/has no end mark/) },
  { name: 'one zero block as end', bytes: cat(file('t'), END.subarray(512)), verdict: 'as-tar' },
  { name: 'an entry after the end', bytes: cat(file('t'), END, file('late')), verdict: 'as-tar' },
  {
    name: 'cut in a content',
    bytes: file('t', 'x'.repeat(600)).subarray(0, 700),
    verdict: invalid(/ends within an entry/),
  },
  {
    name: 'cut in a header',
    bytes: file('t').subarray(0, 100),
    verdict: invalid(/ends within an entry/),
  },
  { name: 'nothing', bytes: Buffer.alloc(0), verdict: invalid(/empty/) },
  { name: 'only an end mark', bytes: END, verdict: 'as-tar' },
  {
    name: 'no archive',
    bytes: Buffer.alloc(2048, 'no tar '),
    verdict: invalid(/not a tar archive/),
  },
];
