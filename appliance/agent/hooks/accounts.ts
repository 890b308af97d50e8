import { AppError } from '#shared/errors/app-error.ts';
import { runCommand } from '../process/command.ts';
import type { UserFields } from './fields.ts';
import type { RootFiles } from './root-files.ts';

/** Ids of people and of services (login.defs(5), systemd's UIDS-GIDS). */
const PEOPLE = { first: 1000, last: 60_000 };
const SYSTEM = { first: 100, last: 999 };
const MS_PER_DAY = 86_400_000;

const PASSWD = { path: '/etc/passwd', mode: 0o644 };
const GROUP = { path: '/etc/group', mode: 0o644 };
const SHADOW = { path: '/etc/shadow', mode: 0o600 };

type Database = typeof PASSWD;
/** Fields of a line, the name first. */
type Entry = readonly string[];

/** @returns the number in field `column` of a name's line. @throws AppError HOOK_FAILED */
export function findId(files: RootFiles, path: string, name: string, column = 2): number {
  if (/^\d+$/.test(name)) return Number(name);
  const id = findEntry(readEntries(files, path), name)?.[column];
  if (id === undefined || !/^\d+$/.test(id))
    throw new AppError('HOOK_FAILED', `${path} has no entry for ${name}`);
  return Number(id);
}

/** Creates a missing user, as yip does. An existing user only gets the password. */
export async function applyUser(
  files: RootFiles,
  name: string,
  fields: UserFields,
  log: (line: string) => void,
): Promise<void> {
  const isNew = findEntry(readEntries(files, PASSWD.path), name) === undefined;
  if (isNew) await createUser(files, name, fields, log);
  if (isNew || fields.passwd !== undefined)
    await setPassword(files, name, isNew && fields.lock_passwd ? '!' : fields.passwd);
  if (fields.ssh_authorized_keys.length > 0)
    await authorizeKeys(files, name, fields.ssh_authorized_keys);
}

/** Adds missing keys. @throws AppError HOOK_FAILED when the user does not exist */
export async function authorizeKeys(
  files: RootFiles,
  name: string,
  keys: readonly string[],
): Promise<void> {
  const entry = findEntry(readEntries(files, PASSWD.path), name);
  const home = entry?.[5];
  if (!entry || !home?.startsWith('/'))
    throw new AppError('HOOK_FAILED', `user ${name} does not exist`);
  const owner = { uid: Number(entry[2]), gid: Number(entry[3]) };
  files.makeDirectory(`${home}/.ssh`, { ...owner, mode: 0o700 });
  const path = `${home}/.ssh/authorized_keys`;
  const present = files.read(path) ?? '';
  const added = keys.filter((key) => !present.split('\n').includes(key.trim()));
  const lines = [...(present === '' ? [] : [withoutNewlines(present)]), ...added];
  await files.write(path, `${lines.join('\n')}\n`, { ...owner, mode: 0o600 });
}

async function createUser(
  files: RootFiles,
  name: string,
  fields: UserFields,
  log: (line: string) => void,
): Promise<void> {
  const range = fields.system ? SYSTEM : PEOPLE;
  const gid = await provideGroup(files, name, fields, range);
  const home = fields.homedir ?? `${readDefault(files, 'HOME') ?? '/home'}/${name}`;
  const uid = fields.uid ?? chooseUid(files, home, range);
  const shell = fields.shell ?? readDefault(files, 'SHELL') ?? '/bin/sh';
  const entry = [name, 'x', String(uid), String(gid), fields.gecos ?? '', home, shell];
  await changeEntries(files, PASSWD, (entries) => [...entries, entry]);
  await joinGroups(files, name, fields.groups, log);
  if (fields.no_create_home || fields.system || home === '/') return;
  const parent = home.replace(/\/[^/]+\/?$/, '');
  if (!files.isDirectory(parent)) files.makeDirectory(parent, { uid: 0, gid: 0, mode: 0o755 });
  files.makeDirectory(home, { uid, gid, mode: 0o755 });
}

async function provideGroup(
  files: RootFiles,
  name: string,
  fields: UserFields,
  range: typeof PEOPLE,
): Promise<number> {
  const wanted = fields.primary_group ?? (fields.no_user_group ? 'users' : name);
  const entries = readEntries(files, GROUP.path);
  const found = findEntry(entries, wanted)?.[2];
  if (found !== undefined) return Number(found);
  if (wanted !== name) throw new AppError('HOOK_FAILED', `group ${wanted} does not exist`);
  const gid = nextFree(entries, range);
  await changeEntries(files, GROUP, (all) => [...all, [name, 'x', String(gid), name]]);
  return gid;
}

async function joinGroups(
  files: RootFiles,
  name: string,
  groups: readonly string[],
  log: (line: string) => void,
): Promise<void> {
  const entries = readEntries(files, GROUP.path);
  for (const group of groups)
    if (!findEntry(entries, group))
      log(`cannot add user ${name} to ${group}: the group does not exist`);
  await changeEntries(files, GROUP, (all) =>
    all.map((entry) => {
      const members = (entry[3] ?? '').split(',').filter((member) => member !== '');
      if (!groups.includes(entry[0] ?? '') || members.includes(name)) return entry;
      return [...entry.slice(0, 3), [...members, name].join(',')];
    }),
  );
}

/** Returns the owner of an existing home directory if that id is free, else the next free id. */
function chooseUid(files: RootFiles, home: string, range: typeof PEOPLE): number {
  const entries = readEntries(files, PASSWD.path);
  if (files.isDirectory(home)) {
    const { uid } = files.ownerOf(home);
    const isFree = entries.every((entry) => Number(entry[2]) !== uid);
    if (isFree && uid >= range.first && uid <= range.last) return uid;
  }
  return nextFree(entries, range);
}

/** Sets a password and keeps the ageing fields. Without a password, password login is locked. */
async function setPassword(
  files: RootFiles,
  name: string,
  password: string | undefined,
): Promise<void> {
  const hash = password === undefined || password === '' ? '!' : await hashPassword(password);
  const today = String(Math.floor(Date.now() / MS_PER_DAY));
  await changeEntries(files, SHADOW, (entries) => {
    const old = findEntry(entries, name);
    const entry = [name, hash, today, ...(old?.slice(3) ?? ['', '', '', '', '', ''])];
    return old ? entries.map((other) => (other === old ? entry : other)) : [...entries, entry];
  });
}

/** Hashes a password, unless it is a hash or a lock already (crypt(5)). */
async function hashPassword(password: string): Promise<string> {
  if (/^[$!*]/.test(password)) return password;
  return (
    await runCommand('openssl', ['passwd', '-6', '-stdin'], { input: `${password}\n` })
  ).trim();
}

function readDefault(files: RootFiles, name: string): string | undefined {
  const text = files.read('/etc/default/useradd') ?? '';
  return new RegExp(`^${name}=["']?(/[^"'\\s]*)`, 'm').exec(text)?.[1];
}

function nextFree(entries: readonly Entry[], { first, last }: typeof PEOPLE): number {
  const used = new Set(entries.map((entry) => Number(entry[2])));
  for (let id = first; id <= last; id += 1) if (!used.has(id)) return id;
  throw new AppError('HOOK_FAILED', `no free id between ${first} and ${last}`);
}

function readEntries(files: RootFiles, path: string): Entry[] {
  return parseEntries(files.read(path) ?? '');
}

function parseEntries(text: string): Entry[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(':'));
}

function findEntry(entries: readonly Entry[], name: string): Entry | undefined {
  return entries.find((entry) => entry[0] === name);
}

async function changeEntries(
  files: RootFiles,
  { path, mode }: Database,
  change: (entries: readonly Entry[]) => readonly Entry[],
): Promise<void> {
  await files.edit(
    path,
    (text) =>
      change(parseEntries(text))
        .map((entry) => `${entry.join(':')}\n`)
        .join(''),
    { mode, uid: 0, gid: 0 },
  );
}

function withoutNewlines(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n') end -= 1;
  return text.slice(0, end);
}
