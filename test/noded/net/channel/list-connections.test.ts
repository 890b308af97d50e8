import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConnections } from '../../../../noded/net/channel/list-connections.ts';

/** ss 6.1.0, `ss -Htan dev = gnt.com.0`. */
const TEXT = `LISTEN   0      511    169.254.169.254%gnt.com.0:80          0.0.0.0:*
SYN-RECV 0      0      169.254.169.254%gnt.com.0:80      169.254.0.1:40001
ESTAB    0      0      169.254.169.254%gnt.com.0:8099    169.254.0.1:40002
LAST-ACK 1      387    169.254.169.254%gnt.com.0:80      169.254.0.1:40003
FIN-WAIT-2 0    0      169.254.169.254%gnt.com.0:80      169.254.0.1:40004
TIME-WAIT 0     0      169.254.169.254%gnt.com.0:80      169.254.0.1:40005
ESTAB    0      0      169.254.169.254%gnt.com.0:80      169.254.0.2:40006
LISTEN   0      511    [fe80::a9fe:a9fe]%gnt.com.0:80             [::]:*
ESTAB    0      0      [fe80::a9fe:a9fe]%gnt.com.0:80 [fe80::5054:ff:feca:1424]%gnt.com.0:40007
ESTAB    0      0      [fe80::a9fe:a9fe]%gnt.com.0:80 [fe80::5054:ff:feca:1424]:40008
`;

test('established, half-open and last-ACK connections of this guest are listed, and other connections are not', () => {
  const guestIpv6 = 'fe80::5054:ff:feca:1424';
  assert.deepEqual(parseConnections(TEXT, '169.254.0.1'), [
    { port: 80, guestPort: 40001, guestIpv6: null },
    { port: 8099, guestPort: 40002, guestIpv6: null },
    { port: 80, guestPort: 40003, guestIpv6: null },
    { port: 80, guestPort: 40007, guestIpv6 },
    { port: 80, guestPort: 40008, guestIpv6 },
  ]);
});
