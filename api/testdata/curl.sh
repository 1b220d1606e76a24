# Drives the daemon at $WRIT_URL as the agent of $WRIT_TOKEN. Ids and times differ
# from run to run, and are blanked.
blank() { sed -E 's/(req|ses|task|call|gr|tok)_[a-z0-9]{8,}/\1_ID/g; s/[0-9a-f]{64}/DIGEST/g; s/[0-9-]{10}T[0-9:.]+Z/TIME/g; s|/[0-9]{4}-[0-9]{2}-[0-9]{2}"|/DAY"|g'; }
ask() { curl --silent --show-error --write-out '%{http_code} %{content_type}\n' "$@" | blank; }
auth="Authorization: Bearer $WRIT_TOKEN"
json="Content-Type: application/json"

echo "# a call"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"write_file","args":{"path":"a","content":"1"}}'
echo "# a denial"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"read_file","args":{"path":"/etc/shadow"}}'
echo "# a person is asked"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"delete_file","args":{"path":"a"}}'
echo "# and where it is looked for"
call() { curl --silent --show-error -H "$auth" -H "$json" "$WRIT_URL/v1/calls" "$@"; }
id=$(call -d '{"tool":"delete_file","args":{"path":"a"}}' | sed 's/.*"approval":"\([^"]*\)".*/\1/')
ask --output /dev/null --dump-header - -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"delete_file","args":{"path":"a"}}' | tr -d '\r' | grep '^Location'
ask -H "$auth" "$WRIT_URL/v1/invocations/$id?wait=0"
echo "# a call with a key, made twice"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"write_file","args":{"path":"b","content":"1"},"idempotency_key":"b-1"}'
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"write_file","args":{"path":"b","content":"1"},"idempotency_key":"b-1"}'
echo "# the key for another call"
ask -H "$auth" -H "$json" "$WRIT_URL/v1/calls" -d '{"tool":"write_file","args":{"path":"b","content":"2"},"idempotency_key":"b-1"}'
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
echo "# one argument, as it is safe to print"
ask --unix-socket state/writ.sock "http://writ/v1/approvals/$id/argument?pointer=/path"
echo "# other arguments, which are denied"
ask --unix-socket state/writ.sock -H "$json" "http://writ/v1/approvals/$id/preview" -d '{"args":{"path":"/etc/passwd"}}'
echo "# a person approves"
digest=$(curl --silent --unix-socket state/writ.sock "http://writ/v1/approvals/$id" | sed 's/.*"digest":"\([0-9a-f]\{64\}\)","quorum".*/\1/')
curl --silent --unix-socket state/writ.sock -H "$json" "http://writ/v1/approvals/$id/decision" \
     -d '{"digest":"'"$digest"'","approve":true,"by":{"name":"alice","passphrase":"correct horse battery"}}' | sed -E 's/.*("decided_by":"[^"]*").*/\1/'
echo "# what came of it"
ask -H "$auth" "$WRIT_URL/v1/invocations/$id?wait=5" | sed -E 's/"(measured_[a-z_]*|result_bytes)":[0-9]+/"\1":N/g'
echo "# what happened to it; the stream ends with the call"
curl --silent --no-buffer -H "$auth" "$WRIT_URL/v1/invocations/$id/events" | grep '^event: '
echo "# a call that is not wanted any more"
id=$(call -d '{"tool":"delete_file","args":{"path":"b"}}' | sed 's/.*"approval":"\([^"]*\)".*/\1/')
curl --silent -H "$auth" -X POST "$WRIT_URL/v1/invocations/$id/cancel" | sed -E 's/.*("status":"[^"]*").*/\1/'
echo "# standing approvals"
ask -H "$auth" "$WRIT_URL/v1/grants"
echo "# what happens to calls"
curl --silent --no-buffer --max-time 1 -H "$auth" "$WRIT_URL/v1/invocation-events?after=0" | grep '^event: ' | sort | uniq -c | sed 's/^ *//'
echo "# events"
curl --silent --no-buffer --max-time 1 -H "$auth" "$WRIT_URL/v1/events?after=0" | grep '^event: ' | sort -u
