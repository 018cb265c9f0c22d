#!/bin/bash
# commands.sh COMMAND SOURCE... [-- COMMAND SOURCE...]: prints compile_commands.json, in which COMMAND
# compiles each SOURCE.
separator='['
command=
for word in "$@"; do
  if [ -z "$command" ]; then
    command=${word//\"/\\\"}
  elif [ "$word" = -- ]; then
    command=
  else
    printf '%s\n{"directory":"%s","file":"%s","command":"%s -c %s"}' "$separator" "$PWD" "$word" "$command" "$word"
    separator=,
  fi
done
printf '\n]\n'
