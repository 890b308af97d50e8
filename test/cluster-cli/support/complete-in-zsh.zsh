# What an interactive zsh offers for each line in argv: `== LINE`, then `offered WORD` for each of its matches in their order, then
# `line TEXT`, the line after tab was pressed. In the folder $COMPLETIONS, `_PROGRAM` is the function of an installed package.
zmodload zsh/zpty
setup=$(cat <<'SETUP'
PROMPT= RPROMPT=
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit && compinit -D -u
source <(gnt-job completion zsh)
compadd() {
  local -a found
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    builtin compadd -O found "$@"
    for word in $found; do print -r -- $'\n'"offered $IPREFIX$word"; done
  fi
  builtin compadd "$@"
}
tell() { print -r -- $'\n'"line $BUFFER"$'\n''end of line'; BUFFER= }
zle -N tell
bindkey '^I' complete-word '^X' tell
stty -echo -onlcr
print ready
SETUP
)
zpty shell zsh -f -i
zpty -w shell "$setup"
zpty -r shell out $'*\nready*' # the first is the typed one
for line; do
  print -r -- "== $line"
  zpty -w -n shell "$line"$'\t\x18'
  zpty -r shell out $'*end of line'
  print -r -- $out | tr -d '\r' | grep -aE '^(offered|line) '
done
zpty -d shell
