import {
  HOST_KEYS_PAUSE_MS,
  MAX_GUEST_ATTRIBUTES,
  MAX_GUEST_ATTRIBUTE_BYTES,
} from '../config/limits.ts';

/** The namespace in which guests publish the public keys of their sshd. */
const HOST_KEYS = 'hostkeys';

/** Values that a guest wrote for the host, by namespace and key. They end with the installation. */
export class GuestAttributeStore implements Disposable {
  #values: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map();
  #count = 0;
  #report: NodeJS.Timeout | undefined;

  get values(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    return this.#values;
  }

  /** @returns false if the guest has written too many values, or too long a one */
  set(namespace: string, key: string, value: string): boolean {
    const former = this.#values.get(namespace);
    const isNew = former?.has(key) !== true;
    if (value.length > MAX_GUEST_ATTRIBUTE_BYTES) return false;
    if (isNew && this.#count >= MAX_GUEST_ATTRIBUTES) return false;
    if (isNew) this.#count += 1;
    this.#values = new Map([
      ...this.#values,
      [namespace, new Map([...(former ?? []), [key, value]])],
    ]);
    return true;
  }

  /** @returns false if there is no such value */
  delete(namespace: string, key: string): boolean {
    const kept = new Map(this.#values.get(namespace));
    if (!kept.delete(key)) return false;
    this.#count -= 1;
    const values = new Map(this.#values);
    if (kept.size > 0) values.set(namespace, kept);
    else values.delete(namespace);
    this.#values = values;
    return true;
  }

  /**
   * Reports the host keys once the guest pauses after a write to their namespace. A guest writes
   * one key per request, and the node daemon trusts the keys of the first report only.
   * @param report gets lines of known_hosts without names, unchecked: `ssh-ed25519 AAAA…`
   */
  reportHostKeys(namespace: string, report: (keys: readonly string[]) => void): void {
    if (namespace !== HOST_KEYS) return;
    clearTimeout(this.#report);
    this.#report = setTimeout(() => report(this.#hostKeys()), HOST_KEYS_PAUSE_MS).unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#report);
  }

  #hostKeys(): readonly string[] {
    return [...(this.#values.get(HOST_KEYS) ?? [])].map(([type, key]) => `${type} ${key}`);
  }
}
