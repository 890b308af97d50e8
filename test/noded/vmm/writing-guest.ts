/**
 * A guest of 512 bytes that fills its disk from sector 64 on, 32 KiB at a time by the BIOS, each
 * with its first sector's number in every four bytes. On ttyS0 it says `u`, a dot for each piece
 * and `D` at the end, or `E` at the first error.
 */
const INSTRUCTIONS = [
  // cli; %ds = %ss = 0; %sp = 0x7c00; sti; cld; %es = 0x1000; say u; %ebx = 64
  'fa 31c0 8ed8 8ed0 bc007c fb fc b80010 8ec0 b075 e83d00 66bb40000000',
  // next: the buffer is %ebx, 8192 times; so is the packet's sector; write it (int 0x13, %ah =
  // 0x43)
  '31ff 6689d8 b90020 66f3ab 66891e6c7c b443 b000 b280 be647c cd13',
  // carry -> say E and stop; say a dot; %ebx += 64, below the limit -> next; say D; stop: hlt
  'b045 7212 b02e e81300 6683c340 663b1e747c 72d1 b044 e80300 f4 ebfd',
  // say: wait for 0x3fd to be ready, byte to 0x3f8
  '52 50 bafd03 ec a820 74fb 58 baf803 ee 5a c3',
  // the packet: 16 bytes, 64 sectors, from 0x1000:0
  '1000 4000 0000 0010',
];
/** hlt, until the clock ticks the next time; then say. */
const TICK = 'f4 e9cfff';
const TICK_OFFSET = 0x80;
/** Of the call that says a dot: its distance from what follows it, at 0x40. */
const DOT_CALL_OFFSET = 0x3e;
const LIMIT_OFFSET = 0x74;
const SECTOR_BYTES = 512;
const FIRST_SECTOR = 64;
const SECTORS_AT_ONCE = 64;

/**
 * @param diskBytes a multiple of 32 KiB
 * @param pace `ticks`: a piece for each tick of the clock, 18.2 a second, however fast the host is
 */
export function createWritingSector(diskBytes: number, pace: 'full' | 'ticks' = 'full'): Buffer {
  const sector = Buffer.alloc(SECTOR_BYTES);
  fromHex(INSTRUCTIONS.join('')).copy(sector);
  if (pace === 'ticks') {
    fromHex(TICK).copy(sector, TICK_OFFSET);
    sector.writeInt16LE(TICK_OFFSET - 0x40, DOT_CALL_OFFSET);
  }
  sector.writeUInt32LE(diskBytes / SECTOR_BYTES, LIMIT_OFFSET);
  sector.writeUInt16BE(0x55aa, 510);
  return sector;
}

/** Returns the first sector without the bytes that the guest wrote; undefined if all have them. */
export function findWrongSector(disk: Buffer): number | undefined {
  for (let at = FIRST_SECTOR * SECTOR_BYTES; at < disk.length; at += SECTOR_BYTES) {
    const sector = at / SECTOR_BYTES;
    const expected = Buffer.alloc(SECTOR_BYTES);
    for (let word = 0; word < SECTOR_BYTES; word += 4)
      expected.writeUInt32LE(sector - (sector % SECTORS_AT_ONCE), word);
    if (!disk.subarray(at, at + SECTOR_BYTES).equals(expected)) return sector;
  }
  return undefined;
}

function fromHex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}
