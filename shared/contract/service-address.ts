/** The host's end of every channel, and the metadata address of Ganeti and the clouds. */
export const SERVICE_IPV4 = '169.254.169.254';
/** The same four bytes in a link-local IPv6 address. */
export const SERVICE_IPV6 = 'fe80::a9fe:a9fe';
export const SERVICE_URL = `http://${SERVICE_IPV4}`;
/** UDP port on which gnt-metad answers for its own name, for Google's clients. */
export const NAME_SERVICE_PORT = 53;
