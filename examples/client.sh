#!/bin/sh
# Runs a command as a task with a memory: says what is known of such tasks, and remembers what came of this one.
# Usage: client.sh "Build the docs" make docs
set -eu
NMEM=${NMEM:-nmem}
task=$1
shift
session="task-$$-$(date +%s)"

# A text as a JSON string.
json() {
    printf '%s' "$1" | awk 'BEGIN { printf "\"" }
        NR > 1 { printf "\\n" }
        { gsub(/\\/, "\\\\\\\\"); gsub(/"/, "\\\\\""); gsub(/\t/, "\\\\t"); gsub(/[\001-\037]/, ""); printf "%s", $0 }
        END { printf "\"" }'
}

# One request, one answer; what goes wrong with the memory does not stop the task.
rad() {
    printf '%s' "$2" | "$NMEM" rad "$1" || true
}

echo "Known of this:"
rad knowledge/related "{\"taskDescription\": $(json "$task"), \"limit\": 3}"

id="\"agent_session_id\": \"$session\", \"source_client\": \"client.sh\""
rad sessions/init "{$id, \"user_prompt\": $(json "$task")}" > /dev/null
status=0
out=$("$@" 2>&1) || status=$?
printf '%s\n' "$out"
if [ "$status" -eq 0 ]; then
    success=true what="\"tool_response\": $(json "$out")"
else
    success=false what="\"error\": $(json "exit code $status: $out")"
fi
rad observations "{$id, \"tool_name\": \"Bash\", \"tool_input\": {\"command\": $(json "$*")}, $what}" > /dev/null
rad sessions/complete "{$id, \"reason\": \"done\"}" > /dev/null
rad knowledge/record "{\"taskDescription\": $(json "$task"), \"success\": $success, \"agentTier\": \"free\"}" > /dev/null
exit "$status"
