/**
 * An installer of a few instructions on a bootable cdrom (El Torito, no emulation). It writes a
 * text to the first sector of the first disk and powers off. Only the firmware has to boot.
 */
const SECTOR = 2048;
const CATALOG_AT = 19;
const IMAGE_AT = 20;
/** Load address of the boot image. */
const LOADED_AT = 0x7c00;
const ADDRESS_PACKET_AT = 0x40;
const TEXT_AT = 0x200;

export function makeBootCdrom(text: string): Buffer {
  const disc = Buffer.alloc(SECTOR * (IMAGE_AT + 1));
  const sector = (index: number): Buffer => disc.subarray(index * SECTOR, (index + 1) * SECTOR);
  sector(16).write('\x01CD001\x01', 'latin1');
  sector(17).write('\x00CD001\x01EL TORITO SPECIFICATION', 'latin1');
  sector(17).writeUInt32LE(CATALOG_AT, 0x47);
  sector(18).write('\xffCD001\x01', 'latin1');
  fillCatalog(sector(CATALOG_AT));
  fillProgram(sector(IMAGE_AT), text);
  return disc;
}

function fillCatalog(catalog: Buffer): void {
  catalog[0] = 1;
  catalog.writeUInt16LE(0xaa55, 0x1e);
  // The checksum makes the sum of all words 0.
  catalog.writeUInt16LE(0x10000 - (0xaa55 + 1), 0x1c);
  // Bootable, without emulation, four sectors of 512 bytes.
  catalog[0x20] = 0x88;
  catalog.writeUInt16LE(SECTOR / 512, 0x26);
  catalog.writeUInt32LE(IMAGE_AT, 0x28);
}

function fillProgram(image: Buffer, text: string): void {
  Buffer.from([
    ...[0x31, 0xc0, 0x8e, 0xd8], // xor ax, ax; mov ds, ax
    ...[0xbe, ADDRESS_PACKET_AT, LOADED_AT >> 8], // mov si, address packet
    ...[0xb8, 0x00, 0x43, 0xb2, 0x80, 0xcd, 0x13], // write sectors of the first disk (int 13h)
    ...[0x72, 0x07], // jc hlt: a machine that stays on is a failure
    ...[0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef], // sleep state 5 at the ACPI port: power off
    ...[0xf4, 0xeb, 0xfd], // hlt; jmp hlt
  ]).copy(image);
  // 16 bytes long, one sector, from TEXT_AT of segment 0, to sector 0.
  Buffer.from([16, 0, 1, 0]).copy(image, ADDRESS_PACKET_AT);
  image.writeUInt16LE(LOADED_AT + TEXT_AT, ADDRESS_PACKET_AT + 4);
  image.write(text, TEXT_AT, 512, 'latin1');
}
