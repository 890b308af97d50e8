import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import type { BootReporting } from '#shared/contract/boot-report.ts';
import type { ServedView } from '../view/served-view.ts';
import { textPart } from './multi-part.ts';
import { isDialectServed } from './served-dialects.ts';

/**
 * Reports a boot from within the guest. It posts cloud-init's status file at the start of each
 * stage. At the end it posts the data of phone_home (readiness, SSH host keys, login user) and the
 * status file again, which then has the errors.
 *
 * It is a boothook: vendor-data has no other way to run something in every boot (cloud-init stores
 * its per-boot scripts and does not run them). A background process of a boothook survives, since
 * the services that kill their processes are never stopped during a boot.
 *
 * cloud-init's own webhook has no filter: some sixty requests per boot, each in a new thread, and
 * seconds of waiting in later boots while the network is down. This script needs five requests and
 * delays nothing. Python is present, since cloud-init is written in it; few modules are imported,
 * since Python's start is most of the cost. The script gets a session token if it needs one.
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
 * Returns the reporting script if `place` is its document; nothing when the ganeti dialect is off.
 */
export function bootReportParts(
  view: ServedView,
  place: Exclude<BootReporting, 'no'>,
): readonly string[] {
  if (!isDialectServed(view, 'ganeti')) return [];
  if ((view.bootReport ?? 'vendor-data') !== place) return [];
  return [textPart('cloud-boothook', TELL_BOOT)];
}
