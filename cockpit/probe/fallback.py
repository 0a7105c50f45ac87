"""The probe of a node without Python: a shell loop around nvidia-smi, in the same line protocol."""

from __future__ import annotations

from cockpit.probe.agent.smi import FIELDS

# $4 is the option word interval=N. The loop is a child of the shell that waits for the end of stdin, so that
# ending stdin ends it; `timeout` hands its TERM on to nvidia-smi. A field that this driver does not know is
# dropped, since it makes the whole query fail.
FALLBACK_SCRIPT = (
    r"""
interval=${4#interval=}
fields='@FIELDS@'
json() {
  tr -d '\000-\011\013-\037\177' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{printf "%s%s", sep, $0; sep="\\n"}'
}
smi=
for p in nvidia-smi /usr/bin/nvidia-smi /usr/local/bin/nvidia-smi; do
  command -v "$p" >/dev/null 2>&1 && { smi=$p; break; }
done
host=$(uname -n | json)
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
no='"everything but nvidia-smi":"no python3 on this node"'
[ -n "$smi" ] || no='"GPUs":"no python3 and no nvidia-smi on this node"'
printf '{"k":"h","v":1,"t":%s,"rev":0,"iv":%s,"host":"%s","boot":"%s","gpus":[],"efa":[],"no":{%s}}\n' \
  "$(date +%s)" "$interval" "$host" "$boot" "$no"
loop() {
  trap 'kill "$t" "$w" 2>/dev/null; exit 0' TERM HUP
  n=0; t=; w=
  while :; do
    n=$((n+1)); csv=
    if [ -n "$smi" ]; then
      said=$(LC_ALL=C timeout -k 2 30 "$smi" --query-gpu="$fields" --format=csv,noheader,nounits 2>&1); rc=$?
      bad=$(printf '%s\n' "$said" | sed -n 's/.*Field "\([^"]*\)" is not a valid field.*/\1/p' | sed 1q)
      if [ -n "$bad" ]; then
        fields=$(printf '%s' "$fields" | tr , '\n' | grep -vxF "$bad" | tr '\n' , | sed 's/,$//')
        [ -n "$fields" ] && continue
      fi
      names=$(printf '%s' "$fields" | sed 's/,/","/g')
      csv=$(printf ',"dr":["smi",0,"no python3",null],"c":{"f":["%s"],"rc":%s,"out":"%s"}' \
        "$names" "$rc" "$(printf '%s\n' "$said" | head -c 16384 | json)")
    else
      csv=',"dr":["none",0,"no python3 and no nvidia-smi on this node",null]'
    fi
    load=$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null | tr ' ' ,)
    mem=$(awk 'BEGIN{t="null"; a="null"} /^MemTotal:/{t=int($2/1024)} /^MemAvailable:/{a=int($2/1024)}
      END{printf "%s,%s", t, a}' /proc/meminfo 2>/dev/null)
    printf '{"k":"s","n":%s,"t":%s,"rev":0,"l":[%s],"m":[%s],"d":null%s}\n' \
      "$n" "$(date +%s)" "$load" "${mem:-null,null}" "$csv" || exit 0
    sleep "$interval" & w=$!
    wait "$w"
  done
}
exec 3<&0
loop </dev/null 3<&- & loop=$!
trap 'kill "$loop" 2>/dev/null; exit 0' TERM HUP
cat <&3 >/dev/null
kill "$loop" 2>/dev/null
wait "$loop" 2>/dev/null
exit 0
"""
).replace("@FIELDS@", ",".join(FIELDS))
