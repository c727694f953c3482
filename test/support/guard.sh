# Cleans up after a test process however it ends, SIGKILL included: its standard input is a pipe from that
# process, and end of file means that the process is gone. Started by guard.ts.
#   kill SIGNAL PID   end this process then        forget PID    it has ended by itself
#   remove DIRECTORY  delete this directory then
# Note: directories come from mkdtemp and so hold no spaces.
kills=""
directories=""
while read -r verb first second; do
  case "$verb" in
    kill) kills="$kills $first:$second" ;;
    forget)
      kept=""
      for entry in $kills; do
        [ "${entry#*:}" = "$first" ] || kept="$kept $entry"
      done
      kills="$kept"
      ;;
    remove) directories="$directories $first" ;;
  esac
done
for entry in $kills; do
  kill -s "${entry%:*}" "${entry#*:}" 2>/dev/null
done
for entry in $kills; do
  tries=0
  while kill -0 "${entry#*:}" 2>/dev/null && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
done
for directory in $directories; do
  rm -rf "$directory"
done
