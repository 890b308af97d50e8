import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterRecord } from '#shared/contract/api.ts';
import { MAX_RELAYS, relayName, relaySecret } from '#shared/contract/relay.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';

const FILE_PREFIX = 'gnt-relay.';

interface Kept {
  readonly secret: Secret;
  /** The server for which it was given; null for a file of the node's administrator. */
  readonly origin: string | null;
}

/** Holds the secrets of relays, in memory only. */
export class RelaySecrets {
  readonly #kept = new Map<string, Kept>();

  /** @param url of the relay: the secret is sent to this server only, even if the URL changes */
  give(name: string, url: string, secret: string): void {
    this.#kept.set(name, { secret: new Secret(secret), origin: new URL(url).origin });
  }

  /** Returns the secret; undefined if it is lost, or was given for another server. */
  find(name: string, url: string): Secret | undefined {
    const kept = this.#kept.get(name);
    const isFor = kept?.origin === null || kept?.origin === new URL(url).origin;
    return isFor ? kept?.secret : undefined;
  }

  /** Forgets given secrets of relays that were removed or lead to another server now. */
  keepOnly(relays: NonNullable<ClusterRecord['relays']>): void {
    for (const [name, { origin }] of this.#kept) {
      const url = ownValue(relays, name)?.url;
      if (origin !== null && (url === undefined || new URL(url).origin !== origin))
        this.#kept.delete(name);
    }
  }

  /** Reads the secrets that systemd passes (systemd.exec(5), LoadCredential=). */
  async load(directory: string | undefined, logger: Logger): Promise<void> {
    if (directory === undefined) return;
    const files = await readdir(directory).catch((error: unknown) => {
      if (systemCodeOf(error) === 'ENOENT') return [];
      throw error;
    });
    const names = files.filter((file) => file.startsWith(FILE_PREFIX)).slice(0, MAX_RELAYS);
    for (const file of names) {
      const name = relayName.safeParse(file.slice(FILE_PREFIX.length)).data;
      const text = (await readFile(join(directory, file), 'utf8')).replace(/\r?\n$/, '');
      const secret = relaySecret.safeParse(text).data;
      if (name === undefined || secret === undefined)
        logger.error('relay.bad-credential', { file });
      else this.#kept.set(name, { secret: new Secret(secret), origin: null });
    }
  }
}
