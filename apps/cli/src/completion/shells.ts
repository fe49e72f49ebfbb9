/** The part of each script that walks the words of a line. The tables before it say what they can be. */

export const BASH = `
_skerry() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path=skerry expects='' word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ -n $expects ]]; then
      expects=''
    elif [[ $word == -* ]]; then
      expects="\${_skerry_values["$path $word"]:-\${_skerry_values["skerry $word"]:-}}"
    elif [[ -n \${_skerry_options["$path $word"]+x} ]]; then
      path="$path $word"
    fi
  done
  local values="$expects"
  if [[ -z $values ]]; then
    if [[ $current == -* ]]; then
      COMPREPLY=($(compgen -W "\${_skerry_options[$path]} \${_skerry_options[skerry]}" -- "$current"))
      return
    fi
    COMPREPLY=($(compgen -W "\${_skerry_commands[$path]}" -- "$current"))
    values="\${_skerry_values[$path]:-}"
  fi
  case $values in
    '' | words) ;;
    files) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null ;;
    *) COMPREPLY+=($(compgen -W "$(skerry completion values "$values" 2>/dev/null)" -- "$current")) ;;
  esac
}
complete -F _skerry skerry
`;

export const ZSH = `
_skerry() {
  local skerry_path=skerry expects='' word index
  local -a found
  for ((index = 2; index < CURRENT; index++)); do
    word="\${words[index]}"
    if [[ -n $expects ]]; then
      expects=''
    elif [[ $word == -* ]]; then
      expects="\${_skerry_values[$skerry_path $word]:-\${_skerry_values[skerry $word]}}"
    elif (( \${+_skerry_options[$skerry_path $word]} )); then
      skerry_path="$skerry_path $word"
    fi
  done
  local kind="$expects"
  if [[ -z $kind ]]; then
    if [[ \${words[CURRENT]} == -* ]]; then
      found=("\${(f)_skerry_options[$skerry_path]}" "\${(f)_skerry_options[skerry]}")
      _describe -o option found
      return
    fi
    found=(\${(f)_skerry_commands[$skerry_path]})
    (( \${#found} )) && _describe command found
    kind="\${_skerry_values[$skerry_path]}"
  fi
  case $kind in
    ('' | words) ;;
    (files) _files ;;
    (*) found=(\${(f)"$(skerry completion values $kind 2>/dev/null)"}); (( \${#found} )) && compadd -a found ;;
  esac
}
if [[ \${funcstack[1]} == _skerry ]]; then
  _skerry "$@"
else
  compdef _skerry skerry
fi
`;

export const FISH = `
function __skerry_at
    set -l path skerry
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
        else if string match -q -- '-*' $word
            if contains -- "$path $word" $__skerry_taking; or contains -- "skerry $word" $__skerry_taking
                set skip yes
            end
        else if contains -- "$path $word" $__skerry_paths
            set path "$path $word"
        end
    end
    test "$path" = "$argv[1]"
end
complete -c skerry -f
`;
