/** Returns the folders above a path, and the path itself. Pure. */
export function ancestorsOf(
  path: string,
): readonly { readonly to: string; readonly word: string }[] {
  const parts = path.split(/(?<=\/)/);
  return parts.map((word, index) => ({ to: parts.slice(0, index + 1).join(''), word }));
}

/** EC2 and OpenStack list their versions without a slash. */
const VERSION = /^(latest|\d{4}-\d{2}-\d{2})$/;

/**
 * Returns the path of an entry of a listing. EC2's list of keys has entries such as `0=my-key`,
 * whose path is the number alone. Paths of folders end with /. Pure.
 */
export function joinPath(path: string, entry: string): string {
  const [name = '', key] = entry.split('=', 2);
  const isFolder = VERSION.test(name) || key !== undefined;
  return `${path.endsWith('/') ? path : `${path}/`}${name}${isFolder ? '/' : ''}`;
}

/** Returns the names in a listing; null if the text is content. Paths of listings end with /. */
export function entriesOf(path: string, text: string): readonly string[] | null {
  if (!path.endsWith('/')) return null;
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.every((line) => /^[\w.:=@ -]+\/?$/.test(line)) ? lines : null;
}
