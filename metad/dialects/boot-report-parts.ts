import { SERVICE_URL } from '#shared/contract/service-address.ts';
import type { BootReporting } from '#shared/contract/boot-report.ts';
import type { ServedView } from '../view/served-view.ts';
import { textPart } from './multi-part.ts';
import { isDialectServed } from './served-dialects.ts';

/**
 * cloud-init's webhook tells each stage and module. A user's own `reporting` stands beside ours; of
 * `phone_home` there can be one alone, so that is the user's.
 */
const REPORTING = `#cloud-config
reporting:
  gnt:
    type: webhook
    endpoint: ${SERVICE_URL}/ganeti/latest/boot/events
    timeout: 5
    retries: 1
`;

/** In the words of the webhook. */
const BOOT_GOES_ON = `tell("boot/events", b"{\\"name\\": \\"modules-final\\", \\"event_type\\": \\"start\\"}")\n`;

/**
 * Events have no error texts, and none of a fault before the webhook was set up: the status file
 * has. A boothook is what vendor-data can have run in every boot (its per-boot scripts are written
 * down and not run), and it runs too early to wait for the end; so it leaves a script for the last
 * stage, whose service lets it wait in the background. What phone_home would say is said here: that
 * the guest is up, its SSH host keys, and whom the operator's keys let in. Python is there, since
 * cloud-init is written in it. It asks for a session token first, and goes without where there is
 * none to be had.
 *
 * @param isAlone nobody else tells the host anything: it first says that a boot goes on, so that
 *   nobody takes `ready` for the end of it
 */
const tellResult = (isAlone: boolean): string => `#cloud-boothook
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
import glob, time, urllib.parse, urllib.request
service = "${SERVICE_URL}/"
agent = {"User-Agent": "Cloud-Init/per-boot"}
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
form = {}
for path in glob.glob("/etc/ssh/ssh_host_*_key.pub"):
    form["pub_key_" + path.split("_")[2]] = read(path)
for path in ["/etc/cloud/cloud.cfg"] + sorted(glob.glob("/etc/cloud/cloud.cfg.d/*.cfg")):
    try:
        import yaml
        form["login_user"] = yaml.safe_load(read(path))["system_info"]["default_user"]["name"]
    except Exception:
        pass
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def ask(path, body, method, headers):
    request = urllib.request.Request(service + path, body, {**agent, **headers}, method=method)
    return opener.open(request, None, 10).read()
def token():
    try:
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        got = ask("latest/api/token", b"", "PUT", lifetime)
        return {"X-aws-ec2-metadata-token": got.decode()}
    except OSError:
        return {}
def tell(path, body):
    for pause in (1, 2, 4, 8, 0):
        try:
            return ask("ganeti/latest/" + path, body, "POST", token())
        except OSError:
            time.sleep(pause)
${isAlone ? BOOT_GOES_ON : ''}tell("ready", urllib.parse.urlencode(form).encode())
tell("boot/status", read("/run/cloud-init/status.json"))
'
) </dev/null >/dev/null 2>&1 &
END
chmod 755 "$scripts/gnt-tell-result"
`;

/**
 * What asks cloud-init to tell its boot, where it is asked in `place`; nothing without the path that
 * takes it.
 */
export function bootReportParts(
  view: ServedView,
  place: Exclude<BootReporting, 'no'>,
): readonly string[] {
  if (!isDialectServed(view, 'ganeti')) return [];
  if ((view.bootReport ?? 'vendor-data') !== place) return [];
  // The webhook cannot send a token, and each refusal would be a warning in the guest's verdict.
  const isAlone = view.metadataToken === 'required';
  return [
    ...(isAlone ? [] : [textPart('cloud-config', REPORTING)]),
    textPart('cloud-boothook', tellResult(isAlone)),
  ];
}
