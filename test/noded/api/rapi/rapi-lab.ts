import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLab, type Lab } from '../../../../scripts/demo/lab.ts';
import { askRapi, type Asking } from './ask-rapi.ts';

/** A real node that serves the remote API on a free port. */
export interface RapiLab {
  readonly lab: Lab;
  readonly port: number;
  readonly usersFile: string;
  readonly certificateFile: string;
  ask(path: string, asking?: Asking): ReturnType<typeof askRapi>;
  /** Adds a trusted definition whose scripts run on the host, so that no QEMU process runs. */
  addOs(name: string, create: readonly string[]): Promise<void>;
}

/** @param users the users file: a name, and options behind it */
export async function createRapiLab(
  name: string,
  password: string,
  users: readonly string[],
): Promise<RapiLab> {
  const lab = await createLab(name);
  const folder = join(lab.paths.root, 'etc/gnt');
  const usersFile = join(folder, 'rapi-users');
  const certificateFile = join(folder, 'rapi.pem');
  await mkdir(folder, { recursive: true });
  const lines = users.map((user) => {
    const [login = '', ...options] = user.split(' ');
    return [login, digestOf(login, password), ...options].join(' ');
  });
  await writeFile(usersFile, `${lines.join('\n')}\n`, { mode: 0o600 });
  await lab.startNode('--rapi', '127.0.0.1:0');
  const log = await readFile(join(lab.paths.root, 'noded.log'), 'utf8');
  const port = Number(/"port":(\d+),"event":"rapi\.ready"/.exec(log)?.[1]);
  assert.ok(port > 0, log);
  return {
    lab,
    port,
    usersFile,
    certificateFile,
    ask: (path, asking = {}) => askRapi({ port, certificateFile }, path, { password, ...asking }),
    addOs: (os, create) => addOs(lab, os, create),
  };
}

/** Returns the digest of a password in a users file. */
export function digestOf(login: string, password: string): string {
  const text = `${login}:Ganeti Remote API:${password}`;
  return `{HA1}${createHash('md5').update(text).digest('hex')}`;
}

async function addOs(lab: Lab, name: string, create: readonly string[]): Promise<void> {
  const folder = join(lab.paths.root, 'srv/ganeti/os', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(
    join(folder, 'parameters.list'),
    'greeting What it says\nlicence A licence\nroot_password A password\n',
  );
  for (const file of ['create', 'import', 'export', 'rename', 'verify']) {
    const lines = file === 'create' ? create : ['exit 0'];
    await writeFile(join(folder, file), ['#!/bin/sh', 'set -eu', ...lines, ''].join('\n'));
    await chmod(join(folder, file), 0o755);
  }
  const trusted = await lab.run('gnt-os', ['modify', '--trusted', 'yes', name]);
  assert.equal(trusted.status, 0, trusted.stderr);
}
