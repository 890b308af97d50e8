/** How often a file is tried: a daemon that restarts cuts transfers, and is back in seconds. */
const TRIES = 10;
const PAUSE_SECONDS = 3;

/**
 * The iPXE script of a machine, where the store has no template of this ID. An EFI kernel finds its
 * initrds by their names on its own line, which the BIOS one does not look at; the names are given
 * here, since two initrds may be called the same. Without a kernel the firmware goes on to the
 * disk. So it does after the last try, but for an installation, which ends there: whoever waits for
 * it is told at once. A machine without a power-off in its ROM's iPXE reboots, which ends it as
 * well.
 */
export const DEFAULT_IPXE = `#!ipxe
{{- if .Env.Kernel}}
set tries:int32 0
:load
kernel {{.Env.PathFor "http" .Env.Kernel}}{{range $i, $_ := .Env.Initrds}} initrd=initrd{{$i}}{{end}} {{.PlainBootParams}} BOOTIF=01-\${netX/mac:hexhyp} || goto again
{{- range $i, $initrd := .Env.Initrds}}
initrd --name initrd{{$i}} {{$.Env.PathFor "http" $initrd}} || goto again
{{- end}}
boot || goto failed
:again
imgfree
inc tries
iseq \${tries} ${TRIES} && goto failed ||
sleep ${PAUSE_SECONDS}
goto load
:failed
{{- if hasSuffix "-install" .Env.Name}}
poweroff || reboot
{{- else}}
exit
{{- end}}
{{- else}}
exit
{{- end}}
`;
