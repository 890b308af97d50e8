import type { RelayAuth } from '#shared/contract/relay.ts';
import { reveal, type Secret } from '#shared/secret/secret.ts';
import { writtenForms } from '#shared/secret/written-forms.ts';

/** Shorter parts of a secret would match ordinary bytes. */
const MIN_FORM_LENGTH = 8;
/**
 * Lines of base64 of a longer secret are not searched: a hundred forms of them would make each
 * answer slow, and keep the daemon from other work.
 */
const MAX_LENGTH_IN_LINES = 512;

export interface Credential {
  /** Header of the request. */
  readonly header: readonly [name: string, value: string] | null;
  /** Pair of the query, percent-encoded. */
  readonly query: string | null;
  /** Byte strings that answers must not contain. */
  readonly forms: readonly string[];
}

/** Returns a request's credential. It must reach no other place than that request. */
export function createCredential(auth: RelayAuth, secret: Secret): Credential {
  const value = reveal(secret);
  const encoded = Buffer.from(value).toString('base64');
  const isLine = (form: string): boolean =>
    value.length > MAX_LENGTH_IN_LINES && form.length <= 76 && encoded.includes(form);
  const forms = [value, ...[...writtenForms(value)].filter((form) => !isLine(form))];
  switch (auth.kind) {
    case 'bearer':
      return make(forms, ['authorization', `Bearer ${value}`]);
    case 'basic': {
      const login = Buffer.from(`${auth.user}:${value}`).toString('base64');
      return make([login, ...forms], ['authorization', `Basic ${login}`]);
    }
    case 'header':
      return make(forms, [auth.name, value]);
    case 'query':
      return make(forms, null, `${auth.name}=${encodeURIComponent(value)}`);
  }
}

function make(
  forms: readonly string[],
  header: Credential['header'],
  query: string | null = null,
): Credential {
  const known = new Set(forms.filter(({ length }) => length >= MIN_FORM_LENGTH));
  return { header, query, forms: [...known] };
}
