import { MAX_GUEST_ATTRIBUTES, MAX_GUEST_ATTRIBUTE_BYTES } from '../config/limits.ts';

/** The namespace in which guests publish the public keys of their sshd. */
const HOST_KEYS = 'hostkeys';

/** Values that a guest wrote for the host, by namespace and key. They end with the installation. */
export class GuestAttributeStore {
  #values: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map();
  #count = 0;

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

  /** Returns the host keys as lines of known_hosts without names: `ssh-ed25519 AAAA…`. */
  hostKeys(): readonly string[] {
    return [...(this.#values.get(HOST_KEYS) ?? [])].map(([type, key]) => `${type} ${key}`);
  }
}
