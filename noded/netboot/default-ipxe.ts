/** Attempts to load the files: a restart of the daemon cuts transfers for some seconds. */
const TRIES = 10;
const PAUSE_SECONDS = 3;

/**
 * The iPXE script of an instance where the store has no template of this ID. An EFI kernel finds
 * its initrds by the names on its command line, which a BIOS kernel ignores. The script sets the
 * names, since two initrds may have the same file name. Without a kernel, or after the last
 * attempt, the firmware boots the disk. An installation instead powers off, so that the waiting job
 * ends at once; it reboots where the ROM's iPXE has no `poweroff`, which ends the job as well.
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
