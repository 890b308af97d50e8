export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/**
 * Returns a script for a shell to source. It calls the program itself, so it knows every command
 * and option.
 */
export function completionScript(shell: Shell, program: string): string {
  const name = `_${program.replaceAll('-', '_')}`;
  switch (shell) {
    case 'bash':
      return bashScript(program, name);
    case 'zsh':
      return zshScript(program, name);
    case 'fish':
      return fishScript(program, name);
  }
}

/** Returns the script for bash, which breaks words at `=` and `:`: it omits text before a break. */
function bashScript(program: string, name: string): string {
  return `# bash completion for ${program}; use: source <(${program} completion bash)
${name}() {
  local line word prefix current cut
  local -a words
  line=\${COMP_LINE:0:COMP_POINT}
  read -ra words <<< "$line"
  [[ $line == *' ' ]] && words+=('')
  current=\${words[\${#words[@]}-1]}
  cut=
  local breaks='' mark
  for mark in = :; do [[ $COMP_WORDBREAKS == *"$mark"* ]] && breaks+=$mark; done
  [[ $breaks && $current == *["$breaks"]* ]] && cut=\${current%"\${current##*["$breaks"]}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r word prefix; do
    if [[ $word == ':file' ]]; then
      compopt -o filenames 2>/dev/null
      local file
      while IFS= read -r file; do
        COMPREPLY+=("\${prefix#"$cut"}$file")
      done < <(compgen -f -- "\${current#"$prefix"}")
    elif [[ $word == "$current"* ]]; then
      [[ $word == *[=:] ]] && compopt -o nospace 2>/dev/null
      COMPREPLY+=("\${word#"$cut"}")
    fi
  done < <(${program} completion-words --plain -- "\${words[@]:1}" 2>/dev/null)
}
complete -F ${name} ${program}
`;
}

/**
 * Returns the script for zsh. zsh calls a file in its function path at the first tab. A sourced
 * script only registers the function.
 */
function zshScript(program: string, name: string): string {
  return `#compdef ${program}
# zsh completion for ${program}; use: source <(${program} completion zsh)
${name}() {
  local word text
  local -a found
  while IFS=$'\\t' read -r word text; do
    if [[ $word == ':file' ]]; then
      compset -P "\${(b)text}"
      _files
      return
    fi
    found+=("\${word//:/\\\\:}\${text:+:$text}")
  done < <(${program} completion-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe '${program}' found
}
if [[ $funcstack[1] == '_${program}' ]]; then
  ${name} "$@"
else
  compdef ${name} ${program}
fi
`;
}

function fishScript(program: string, name: string): string {
  return `# fish completion for ${program}; use: ${program} completion fish | source
function ${name}
  set -l words (commandline -opc) (commandline -ct)
  for line in (${program} completion-words -- $words[2..-1] 2>/dev/null)
    set -l parts (string split \\t -- $line)
    if test "$parts[1]" = ':file'
      set -l typed (string sub -s (math (string length -- "$parts[2]") + 1) -- (commandline -ct))
      for file in (__fish_complete_path "$typed")
        echo "$parts[2]$file"
      end
    else
      echo $line
    end
  end
end
complete -c ${program} -f -a '(${name})'
`;
}
