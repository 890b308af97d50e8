export const INSTANCE = '00000001-0000-4000-8000-000000000000';
export const DISK = '00000010-0000-4000-8000-000000000000';

const own = `${INSTANCE}:10203946128712871934\tnode1.example.com`;
/** Rows of ZFS 2.1.11 in Debian 12, with volumes received in tank/backup. */
const ROWS = [
  'tank\tfilesystem\t4129785710983457\t704512\t368394240\t24576\t-\t-\t-',
  'tank/backup\tfilesystem\t9920110238745\t24576\t368369664\t24576\t-\t-\t-',
  `tank/backup/${DISK}.disk\tvolume\t1120110238745\t12288\t368394240\t12288\t4194304\t${own}`,
  'tank/vms\tfilesystem\t10203946128712871934\t98304\t368394240\t24576\t-\t-\t-',
  `tank/vms/${DISK}.disk\tvolume\t72057594037927\t12288\t368394240\t12288\t4194304\t${own}`,
  `tank/vms/${DISK}.snapshot-00000020-0000-4000-8000-000000000000\tvolume\t82057594037927\t0\t368394240\t12288\t4194304\t${own}`,
  'tank/vms/precious\tvolume\t92057594037927\t12288\t368394240\t12288\t8388608\t-\t-',
];
/** Each row ends with its name again. */
export const DATASETS = ROWS.map((row) => `${row}\t${row.split('\t')[0]}\n`).join('');
export const SNAPSHOTS = `${[
  `tank/vms/${DISK}.disk@gnt-1\ttank/vms/${DISK}.snapshot-00000020-0000-4000-8000-000000000000\ton`,
  `tank/vms/${DISK}.disk@daily\t\toff`,
].join('\n')}\n`;
