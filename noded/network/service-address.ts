/** The host's end of every channel. Ganeti's and every cloud's metadata address. */
export const SERVICE_IPV4 = '169.254.169.254';
/** The same four bytes in a link-local IPv6 address. */
export const SERVICE_IPV6 = 'fe80::a9fe:a9fe';
/** Where a neighbour solicitation for SERVICE_IPV6 goes: ff02::1:ff + its last 24 bits (RFC 4291, 2.7.1). */
export const SERVICE_SOLICITED_NODE = 'ff02::1:fffe:a9fe';
export const HTTP_PORT = 80;
export const DHCP_SERVER_PORT = 67;
export const DHCP_CLIENT_PORT = 68;
