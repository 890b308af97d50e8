import { SERVICE_URL } from '#shared/contract/service-address.ts';
import type { ServedView } from '../view/served-view.ts';
import { isDialectServed } from './served-dialects.ts';

/** cloud-init's final stage posts here, which tells the node daemon that the instance is up. */
const PHONE_HOME = `#cloud-config
phone_home:
  url: ${SERVICE_URL}/ganeti/latest/ready
  post: [instance_id, hostname, fqdn]
  tries: 5
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
  const own = isDialectServed(view, 'ganeti') ? PHONE_HOME : null;
  const operators = view.vendorData ? Buffer.from(view.vendorData, 'base64') : null;
  if (!operators || operators.length === 0) return Buffer.from(own ?? '');
  const parts = own === null ? [] : [textPart(own)];
  return Buffer.from(multipart([...parts, operatorsPart(operators)]));
}

function textPart(document: string): string {
  return `Content-Type: text/cloud-config; charset="us-ascii"\r\nMIME-Version: 1.0\r\n\r\n${document}\r\n`;
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
