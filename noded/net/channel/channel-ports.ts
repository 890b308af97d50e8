/**
 * Destination of neighbour solicitations for the service's IPv6 address: ff02::1:ff + its last 24
 * bits (RFC 4291, 2.7.1).
 */
export const SERVICE_SOLICITED_NODE = 'ff02::1:fffe:a9fe';
export const HTTP_PORT = 80;
export const DHCP_SERVER_PORT = 67;
export const DHCP_CLIENT_PORT = 68;
