import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import type { BootReporting } from '#shared/contract/boot-report.ts';
import type { ServedView } from '../view/served-view.ts';
import { textPart } from './multi-part.ts';
import { isDialectServed } from './served-dialects.ts';

/**
 * What watches a boot from within and tells it: the status file of cloud-init's whenever a stage
 * has begun, and at its end what phone_home would say (that the guest is up, its SSH host keys,
 * whom the operator's keys let in) and that file once more, which has the errors. A boothook is
 * what vendor-data can have run in every boot (its per-boot scripts are written down and not run),
 * and all of its services let it stay: those that stop with their processes are never stopped in a
 * boot.
 *
 * cloud-init's own webhook has no filter: some sixty requests a boot, each by a thread of its own
 * making, and while a later boot has no network yet, seconds of waiting for it. This takes five
 * requests and nobody waits. Python is there, since cloud-init is written in it; with few modules,
 * as its start is most of the cost. A session token is asked for when there has to be one.
 */
const TELL_BOOT = `#cloud-boothook
#!/bin/sh
python=$(command -v python3) || python=/usr/libexec/platform-python
"$python" -I -S -c '
import glob, json, os, socket, time
CLOUD = "/run/cloud-init/"
token = b""
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
def ask(method, path, headers, body):
    with socket.create_connection(("${SERVICE_IPV4}", 80), 10) as service:
        head = "%s /%s HTTP/1.0\\r\\nHost: ${SERVICE_IPV4}\\r\\nUser-Agent: Cloud-Init/boot\\r\\nContent-Length: %d\\r\\n" % (method, path, len(body))
        service.sendall(head.encode() + headers + b"\\r\\n" + body)
        answer = b""
        while len(answer) < 65536:
            some = service.recv(4096)
            if not some:
                break
            answer += some
    head, _, text = answer.partition(b"\\r\\n\\r\\n")
    return int(head.split()[1]), text
def tell(path, body, pauses):
    global token
    for pause in pauses:
        try:
            for again in (True, False):
                status, _ = ask("POST", "ganeti/latest/" + path, token, body)
                if status != 401 or not again:
                    break
                got = ask("PUT", "latest/api/token", b"X-aws-ec2-metadata-token-ttl-seconds: 21600\\r\\n", b"")
                token = b"X-aws-ec2-metadata-token: " + got[1] + b"\\r\\n" if got[0] == 200 else b""
            if status < 429:
                return
        except (OSError, ValueError, IndexError):
            pass
        time.sleep(pause)
def encode(text):
    return b"".join(b"%c" % byte if chr(byte).isalnum() and byte < 128 else b"%%%02X" % byte for byte in text)
def login_user(text):
    depth = -1
    for line in text.splitlines():
        key, _, value = line.partition(b":")
        if not key.strip() or key.strip().startswith(b"#"):
            continue
        own = len(key) - len(key.lstrip())
        if depth >= 0 and own <= depth:
            depth = -1
        if key.strip() == b"default_user":
            depth = own
        elif depth >= 0 and key.strip() == b"name":
            return value.split(b" #")[0].strip(b" \\t\\x22\\x27")
def form():
    pairs = {}
    for path in ["/etc/cloud/cloud.cfg"] + sorted(glob.glob("/etc/cloud/cloud.cfg.d/*.cfg")):
        user = login_user(read(path))
        if user:
            pairs[b"login_user"] = user
    for path in glob.glob("/etc/ssh/ssh_host_*_key.pub"):
        pairs[b"pub_key_" + path.split("_")[2].encode()] = read(path)
    return b"&".join(name + b"=" + encode(value) for name, value in pairs.items())
told = None
end = time.monotonic() + 86400
while not os.path.exists(CLOUD + "result.json") and time.monotonic() < end:
    text = read(CLOUD + "status.json")
    if text != told:
        told = text
        try:
            if json.loads(text)["v1"]["stage"]:
                tell("boot/status", text, (1, 0))
        except (ValueError, KeyError, TypeError):
            pass
    time.sleep(0.1)
pauses = (1, 2, 4, 8, 0)
tell("ready", form(), pauses)
tell("boot/status", read(CLOUD + "status.json"), pauses)
' </dev/null >/dev/null 2>&1 &
`;

/**
 * What tells the guest's boot, where it is asked to in `place`; nothing without the path that takes
 * it.
 */
export function bootReportParts(
  view: ServedView,
  place: Exclude<BootReporting, 'no'>,
): readonly string[] {
  if (!isDialectServed(view, 'ganeti')) return [];
  if ((view.bootReport ?? 'vendor-data') !== place) return [];
  return [textPart('cloud-boothook', TELL_BOOT)];
}
