/** The host's end of every channel. Ganeti's and every cloud's metadata address. */
export const SERVICE_IPV4 = '169.254.169.254';
/** The same four bytes in a link-local IPv6 address. */
export const SERVICE_IPV6 = 'fe80::a9fe:a9fe';
/** Where guests find what is served to them. */
export const SERVICE_URL = `http://${SERVICE_IPV4}`;
