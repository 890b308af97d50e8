import { SERVICE_URL } from '#shared/contract/service-address.ts';
import type { ServedView } from '../view/served-view.ts';
import { isDialectServed } from './served-dialects.ts';

/**
 * cloud-init's final stage posts to `ready` on the first boot; on every boot its webhook tells each
 * stage and module. A user's own `reporting` stands beside ours; a user's `phone_home` replaces it.
 */
const REPORTING = `#cloud-config
phone_home:
  url: ${SERVICE_URL}/ganeti/latest/ready
  post: [instance_id, hostname, fqdn]
  tries: 5
reporting:
  gnt:
    type: webhook
    endpoint: ${SERVICE_URL}/ganeti/latest/boot/events
    timeout: 5
    retries: 1
`;

/**
 * Events have no error texts, and none of a fault before the webhook was set up: the status file
 * has. A boothook is what vendor-data can have run in every boot (its per-boot scripts are written
 * down and not run), and it runs too early to wait for the end; so it leaves a script for the last
 * stage, whose service lets it wait in the background. Python is there, since cloud-init is
 * written in it.
 */
const TELL_RESULT = `#cloud-boothook
#!/bin/sh
scripts=/var/lib/cloud/scripts/per-boot
mkdir -p "$scripts"
cat >"$scripts/gnt-tell-result" <<'END'
#!/bin/sh
(
  tries=3000
  until [ -e /run/cloud-init/result.json ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 0
    sleep 0.2 || sleep 1
  done
  exec python3 -c '
import time, urllib.request
body = open("/run/cloud-init/status.json", "rb").read()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for pause in (1, 2, 4, 8, 0):
    try:
        opener.open("${SERVICE_URL}/ganeti/latest/boot/status", body, 10)
        break
    except OSError:
        time.sleep(pause)
'
) </dev/null >/dev/null 2>&1 &
END
chmod 755 "$scripts/gnt-tell-result"
`;

/**
 * Fixed, so that equal views give equal bytes and ETags; a document that contains it gets a longer
 * one.
 */
const BOUNDARY = 'GNTVENDORDATA';

/**
 * cloud-init's vendor-data: the service's own part and, after it, the operator's document. Always
 * ASCII, as OpenStack's flavour carries it in JSON. Empty when there is neither.
 */
export function vendorData(view: ServedView): Buffer {
  const own = isDialectServed(view, 'ganeti')
    ? [textPart('cloud-config', REPORTING), textPart('cloud-boothook', TELL_RESULT)]
    : [];
  const operators = Buffer.from(view.vendorData ?? '', 'base64');
  const parts = [...own, ...(operators.length > 0 ? [operatorsPart(operators)] : [])];
  return Buffer.from(parts.length === 0 ? '' : multipart(parts));
}

function textPart(type: string, document: string): string {
  const name = `Content-Disposition: attachment; filename="gnt-${type}"`;
  return `Content-Type: text/${type}; charset="us-ascii"\r\nMIME-Version: 1.0\r\n${name}\r\n\r\n${document}`;
}

/**
 * A MIME document becomes a nested part; anything else goes in base64 and cloud-init finds its type
 * by its first line.
 */
function operatorsPart(document: Buffer): string {
  const text = document.toString('latin1');
  if (/^(content-type|mime-version):/i.test(text) && !/[\x80-\xff]/.test(text)) return text;
  const lines = document.toString('base64').match(/.{1,76}/g) ?? [];
  return [
    `Content-Type: ${contentTypeOf(text)}`,
    'MIME-Version: 1.0',
    'Content-Transfer-Encoding: base64',
    '',
    ...lines,
    '',
  ].join('\r\n');
}

/**
 * First lines that cloud-init knows (cloudinit/handlers/__init__.py); text/plain lets it look for
 * itself.
 */
function contentTypeOf(text: string): string {
  const known: readonly (readonly [string, string])[] = [
    ['#cloud-config-archive', 'text/cloud-config-archive'],
    ['#cloud-config', 'text/cloud-config'],
    ['#cloud-boothook', 'text/cloud-boothook'],
    ['#include-once', 'text/x-include-once-url'],
    ['#include', 'text/x-include-url'],
    ['#part-handler', 'text/part-handler'],
    ['## template: jinja', 'text/jinja2'],
    ['#!', 'text/x-shellscript'],
    ['\x1f\x8b', 'application/gzip'],
  ];
  return known.find(([start]) => text.startsWith(start))?.[1] ?? 'text/plain';
}

function multipart(parts: readonly string[]): string {
  let boundary = BOUNDARY;
  while (parts.some((part) => part.includes(boundary))) boundary += 'X';
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('');
  return `Content-Type: multipart/mixed; boundary="${boundary}"\r\nMIME-Version: 1.0\r\n\r\n${body}--${boundary}--\r\n`;
}
