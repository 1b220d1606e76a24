# Drives the daemon at $WRIT_URL as the agent of $WRIT_TOKEN. Ids and times differ
# from run to run, and are blanked.
blank() { sed -E 's/(req|ses|task|call|ap|tok)_[a-z0-9]{8,}/\1_ID/g; s/[0-9a-f]{64}/DIGEST/g; s/[0-9-]{10}T[0-9:.]+Z/TIME/g'; }
ask() { curl --silent --show-error --write-out '%{http_code} %{content_type}\n' "$@" | blank; }
auth="Authorization: Bearer $WRIT_TOKEN"
json="Content-Type: application/json"

echo "# a call"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"write_file","args":{"path":"a","content":"1"}}'
echo "# a denial"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"read_file","args":{"path":"/etc/shadow"}}'
echo "# a person is asked"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"delete_file","args":{"path":"a"}}'
echo "# a session"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/sessions" -d '{"name":"curl"}'
echo "# a batch"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/batches" -d '{"calls":[{"tool":"read_file","args":{"path":"a"}},{"tool":"nothing"}]}'
echo "# without a token"
ask -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"stat"}'
echo "# as a form"
ask -H "$auth" "$WRIT_URL/v1/calls" -d 'tool=stat'
echo "# nothing there"
ask -H "$auth" "$WRIT_URL/v1/ledger"
echo "# the wrong method"
ask -H "$auth" -X PUT "$WRIT_URL/v1/calls"
echo "# somebody else's name"
ask -H "$auth" -H "Host: evil.example" "$WRIT_URL/v1/tools"
echo "# the operator, over the socket"
ask --unix-socket state/writ.sock "http://writ/v1/approvals?state=pending&limit=1"
echo "# events"
curl --silent --no-buffer --max-time 1 -H "$auth" "$WRIT_URL/v1/events?after=0" | grep '^event: ' | sort -u
