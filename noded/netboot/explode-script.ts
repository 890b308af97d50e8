/** Names in one archive. A whole distribution on one disk has a tenth of this. */
export const MAX_ARCHIVE_NAMES = 100_000;
/** In bytes. */
export const MAX_ARCHIVE_PATH_BYTES = 1024;
export const MAX_ARCHIVE_DEPTH = 32;
/**
 * End of the script's output: the offset of the index, and whether it describes the output before
 * it (`index`) or the archive's own bytes (`in-place`).
 */
export const TRAILER_BYTES = 64;
export const TRAILER = /^gnt-(index|in-place) (\d{1,15}) *\n$/;

/** Prefix of the script's error line; the reason follows. */
export const ARCHIVE_REFUSED = 'the archive cannot be opened: ';

/**
 * Opens an archive that instances boot from, and prints an index of its files (@see
 * parseArchiveIndex) and the offset of the index. It runs in the appliance, confined like an
 * untrusted script, and is Perl, which the appliance has. The kernel reads ISO 9660 file systems,
 * with Rock Ridge and Joliet. A program of the distribution decompresses a tar archive, which the
 * script parses. An uncompressed tar archive, and an ISO image whose files are contiguous, are
 * indexed in place: the files remain in the archive. Otherwise the files are printed before the
 * index, each at a multiple of 512 bytes. Links that lead outside are left out. A file system that
 * claims more than it can hold (files on the same blocks, folders within themselves) is refused by
 * the sum of its sizes.
 */
export const EXPLODE_SCRIPT = String.raw`#!/usr/bin/perl
use strict;
use warnings;

my ($device, $bytes) = ('/dev/disk/by-id/virtio-disk0', $ENV{ARCHIVE_BYTES});
my ($max_names, $max_depth, $max_path) = (${MAX_ARCHIVE_NAMES}, ${MAX_ARCHIVE_DEPTH}, ${MAX_ARCHIVE_PATH_BYTES});
my ($chunk, $align, $max_meta, $max_multiple) = (1 << 20, 512, 1 << 20, 2);
my ($names, $at, $left, $in_place, %files, %links) = (0, 0, 0, 0);
binmode STDOUT;
# F_SETPIPE_SZ; where what is printed goes into no pipe, there is none to make larger.
fcntl(STDOUT, 1031, $chunk);

sub refuse {
  print STDERR "${ARCHIVE_REFUSED}$_[0]\n";
  exit 1;
}
sub put {
  my $done = 0;
  while ($done < length $_[0]) {
    my $written = syswrite(STDOUT, $_[0], length($_[0]) - $done, $done);
    refuse($!) unless defined $written;
    $done += $written;
  }
  $at += length $_[0];
}
sub pad { put("\0" x (-$at % $align)) }
sub count_name { refuse("it has more than $max_names names") if ++$names > $max_names }

# Undefined for what leads out of the archive.
sub resolve {
  my @kept;
  for my $part (map { split m{/} } @_) {
    next if $part eq '' || $part eq '.';
    if ($part ne '..') { push @kept, $part; next }
    return undef unless @kept;
    pop @kept;
  }
  return join '/', @kept;
}
# Undefined for what no request could ask for.
sub clean {
  my $path = resolve(@_);
  return undef if !defined $path || $path eq '' || length $path > $max_path || ($path =~ tr{/}{}) >= $max_depth;
  my $text = $path;
  return undef unless utf8::decode($text);
  return undef if $text =~ /[\x00-\x1f\x7f-\x9f\\\x{d800}-\x{dfff}\x{fffd}]/;
  return $path;
}

sub add_place {
  my ($name, $offset, $size) = @_;
  my $path = clean($name);
  if (!defined $path) { $left++; return }
  $files{$path} = [$offset, $size];
  delete $links{$path};
}
sub add_file {
  my ($name, $size, $in) = @_;
  my $offset = $at;
  my $path = clean($name);
  for (my $missing = $size; $missing > 0;) {
    my $got = read($in, my $data, $missing < $chunk ? $missing : $chunk);
    refuse('it ends in the middle of a file') unless $got;
    put($data) if defined $path;
    $missing -= $got;
  }
  pad();
  add_place($name, $offset, $size);
}
sub add_link {
  my ($name, $target, $is_symbolic) = @_;
  my $path = clean($name);
  my ($folder) = $name =~ m{^(.*)/};
  my $to = resolve($is_symbolic && $target !~ m{^/} ? ($folder // '', $target) : $target);
  # To the root of the archive itself, or to what could be in it.
  if (defined $path && defined $to && ($to eq '' || defined clean($to))) { $links{$path} = $to } else { $left++ }
}

open(my $archive, '<:raw', $device) or refuse($!);

# Where a file's bytes are in the device: isofs makes its inode's number of the place of its directory
# record, in pieces of 32 bytes. Undefined for what is not there as it is, in one piece.
my ($held_block, $held) = (-1);
sub find_place {
  my ($ino, $block_size, $size) = @_;
  return 0 if $size == 0;
  return undef if $block_size != 2048;
  my ($block, $piece) = ($ino >> 6, $ino & 63);
  if ($block != $held_block) {
    $held_block = -1;
    seek($archive, $block * 2048, 0) && (read($archive, $held, 2048) // 0) == 2048 or return undef;
    $held_block = $block;
  }
  for (my $at = 0; $at + 33 <= 2048;) {
    my $length = ord substr($held, $at, 1);
    return undef if $length < 33;
    if ($at >> 5 == $piece) {
      my ($attributes, $extent, $recorded, $flags, $unit, $gap) = unpack("x$at x C V x4 V x11 C3", $held);
      my $offset = ($extent + $attributes) * 2048;
      my $is_whole = $recorded == $size && !($flags & 0x80) && !$unit && !$gap;
      return $is_whole && $offset + $size <= $bytes ? $offset : undef;
    }
    $at += $length;
  }
  return undef;
}
# Files that are the same one may have the same place.
sub are_apart {
  my $end = 0;
  my ($last_at, $last_size) = (-1, 0);
  for (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } grep { $_->[1] } @_) {
    my ($from, $size) = @$_;
    next if $from == $last_at && $size == $last_size;
    return 0 if $from < $end;
    ($last_at, $last_size, $end) = ($from, $size, $from + $size);
  }
  return 1;
}

sub read_folder {
  my ($root) = @_;
  my ($sum, %seen, @regular) = (0);
  my $walk;
  $walk = sub {
    my ($folder, $depth) = @_;
    my ($dev, $ino) = lstat("$root/$folder") or refuse("$folder: $!");
    refuse('its folders are in themselves, or too deep in each other') if $depth > $max_depth || $seen{"$dev:$ino"}++;
    opendir(my $handle, "$root/$folder") or refuse("$folder: $!");
    my @found;
    while (defined(my $name = readdir $handle)) {
      next if $name eq '.' || $name eq '..';
      count_name();
      push @found, $name;
    }
    closedir $handle;
    for my $name (sort @found) {
      my $path = $folder eq '' ? $name : "$folder/$name";
      my ($ino, $size, $block_size) = (lstat("$root/$path"))[1, 7, 11];
      refuse("$path: $!") unless defined $ino;
      if (-l _) { add_link($path, readlink("$root/$path") // '', 1) }
      elsif (-d _) { $walk->($path, $depth + 1) }
      elsif (-f _) {
        $sum += $size;
        refuse('its files lie on each other: they have more bytes than it') if $sum > $max_multiple * $bytes;
        push @regular, [find_place($ino, $block_size, $size), $size, $path];
      }
    }
  };
  $walk->('', 1);
  $in_place = !(grep { !defined $_->[0] } @regular) && are_apart(@regular);
  for (@regular) {
    my ($offset, $size, $path) = @$_;
    if ($in_place) { add_place($path, $offset, $size); next }
    # Read in whole chunks: Perl's own buffer would cut them into pieces of 8 KiB.
    open(my $in, '<:unix', "$root/$path") or refuse("$path: $!");
    add_file($path, $size, $in);
  }
}

sub number {
  my ($field) = @_;
  if (ord($field) & 0x80) {
    my $value = 0;
    $value = $value * 256 + ord for split //, substr($field, 4);
    return $value;
  }
  return $field =~ /^ *([0-7]*)[ \0]*$/ ? oct($1 eq '' ? 0 : $1) : refuse('a number in its headers is none');
}
sub read_meta {
  my ($in, $size) = @_;
  refuse('a header of it is too long') if $size > $max_meta;
  my $whole = $size + (-$size % 512);
  (read($in, my $data, $whole) // 0) == $whole or refuse('it ends in the middle of a header');
  return substr($data, 0, $size);
}
sub skip {
  my ($in, $missing) = @_;
  while ($missing > 0) {
    my $got = read($in, my $data, $missing < $chunk ? $missing : $chunk);
    refuse('it ends in the middle of a file') unless $got;
    $missing -= $got;
  }
}
sub read_tar {
  my ($in) = @_;
  my ($long_name, $long_link, %pax, $entries);
  while (my $got = read($in, my $head, 512) // refuse($!)) {
    refuse('it ends in the middle of a header') if $got != 512 || $in_place && tell($in) > $bytes;
    last if $head eq "\0" x 512;
    my ($sum) = substr($head, 148, 8) =~ /^ *([0-7]+)[ \0]*$/;
    my $copy = $head;
    substr($copy, 148, 8) = ' ' x 8;
    refuse('it is neither ISO 9660 nor tar, plain or in gzip, xz, zstd or bzip2') if !defined $sum || unpack('%32C*', $copy) != oct $sum;
    count_name();
    $entries++;
    my ($name, $link, $prefix) = (unpack('Z100', $head), unpack('x157 Z100', $head), unpack('x345 Z155', $head));
    my ($size, $type) = (number(substr($head, 124, 12)), substr($head, 156, 1));
    $name = "$prefix/$name" if substr($head, 257, 6) eq "ustar\0" && $prefix ne '';
    if ($type eq 'L' || $type eq 'K' || $type eq 'x' || $type eq 'g') {
      my $data = read_meta($in, $size);
      if ($type eq 'L') { ($long_name) = unpack('Z*', $data) }
      elsif ($type eq 'K') { ($long_link) = unpack('Z*', $data) }
      elsif ($type eq 'x') {
        while ($data =~ /\G(\d{1,7}) /gc) {
          my ($from, $length) = (pos($data), $1 - length($1) - 1);
          refuse('a header of it is none') if $length < 1 || $from + $length > length $data;
          my ($key, $value) = split /=/, substr($data, $from, $length - 1), 2;
          $pax{$key} = $value;
          pos($data) = $from + $length;
        }
      }
      next;
    }
    $name = $pax{path} // $long_name // $name;
    $link = $pax{linkpath} // $long_link // $link;
    if (grep { /^GNU\.sparse\./ } keys %pax) {
      my $sparse = $pax{'GNU.sparse.name'} // $name;
      refuse("$sparse in it is a sparse file: make the archive without --sparse");
    }
    $size = $pax{size} if defined $pax{size} && $pax{size} =~ /^\d{1,15}$/;
    ($long_name, $long_link, %pax) = ();
    if ($type eq '0' || $type eq "\0" || $type eq '7') {
      my $padding = -$size % 512;
      # Old archives have folders so, which are empty.
      if ($name =~ m{/$}) { skip($in, $size + $padding); next }
      if ($in_place) {
        my $offset = tell $in;
        refuse('it ends in the middle of a file') if $offset + $size + $padding > $bytes;
        add_place($name, $offset, $size);
        seek($in, $size + $padding, 1) or refuse($!);
        next;
      }
      add_file($name, $size, $in);
      skip($in, $padding);
    }
    elsif ($type eq '2') { add_link($name, $link, 1) }
    elsif ($type eq '1') { add_link($name, $link, 0) }
    elsif ($type !~ /[3-6]/) { refuse('it has entries of a kind that is not known') }
  }
  refuse('there is nothing in it') unless $entries;
  # So that what is damaged behind its end is heard of too.
  1 while !$in_place && read($in, my $rest, $chunk);
}

read($archive, my $head, 8);
my $iso = '';
seek($archive, 16 * 2048 + 1, 0) && read($archive, $iso, 5) if $bytes > 34816;
my %decompressors = ("\x1f\x8b" => 'gzip -dc', "\xfd7" => 'xz -dc', "\x28\xb5" => 'zstd -dcq', 'BZ' => 'bzip2 -dc');
my $decompressor = $decompressors{substr($head, 0, 2)};
if ($iso eq 'CD001') {
  mkdir '/tmp/archive' or refuse($!);
  system('mount', '-t', 'iso9660', '-o', 'ro,nosuid,nodev,noexec,iocharset=utf8', $device, '/tmp/archive') == 0
    or refuse('its file system cannot be mounted');
  read_folder('/tmp/archive');
  system('umount', '/tmp/archive') == 0 or refuse('its file system is held');
}
elsif (defined $decompressor) {
  open(my $in, '-|:raw', 'sh', '-c', "head -c $bytes $device | $decompressor") or refuse($!);
  read_tar($in);
  # gzip says so of what follows its last stream.
  close($in) || $decompressor eq 'gzip -dc' && $? >> 8 == 2 or refuse('it is damaged or cut');
}
else {
  $in_place = 1;
  seek($archive, 0, 0) or refuse($!);
  read_tar($archive);
}
pad();
my $index = $at;
delete @links{keys %files};
put(join '', map { "$files{$_}[0] $files{$_}[1] $_\n" } sort keys %files);
put(join '', map { "link $_\t$links{$_}\n" } sort keys %links);
put(sprintf("%-63s\n", ($in_place ? 'gnt-in-place' : 'gnt-index') . " $index"));
my $where = $in_place ? ', where they are in the archive' : '';
print STDERR scalar(keys %files) . " files$where, " . scalar(keys %links) . " links, $left names left out\n";
`;
