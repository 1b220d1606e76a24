#!/usr/bin/env python3
"""Check an export of a writ ledger without writ.

    writ ledger export -o ledger.jsonl
    python3 verify.py ledger.jsonl [PUBLIC-KEY-HEX [NOTED-HASH]]

A line is an entry, {"body":B,"hash":H}, or a signed head, {"head":D,"signature":S}.
H is the SHA-256 of the bytes of B, which are canonical JSON (RFC 8785). B holds
"prev", the hash of the entry before it (64 zeros for the first), and "seq", which
counts from 1. D names the hash and seq of an entry; S is an Ed25519 signature of
the bytes of D. The last head is of the last entry. Only the standard library is
used; signatures are checked by openssl 3 where it is installed.
"""
import hashlib, json, os, shutil, subprocess, sys, tempfile

problems = []

def pairs(items):
    if len(dict(items)) != len(items):
        raise ValueError("a key is there twice")
    return dict(items)

DECODER = json.JSONDecoder(object_pairs_hook=pairs)

def part(line, start):
    """The value that follows start, and its exact bytes."""
    value, end = DECODER.raw_decode(line, len(start))
    text = line[len(start):end]
    if json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) != text:
        raise ValueError("not canonical")
    return value, text.encode()

def signed(key, message, signature):
    with tempfile.TemporaryDirectory() as d:
        files = {"key": bytes.fromhex("302a300506032b6570032100" + key), "msg": message, "sig": bytes.fromhex(signature)}
        for name, data in files.items():
            with open(os.path.join(d, name), "wb") as f:
                f.write(data)
        return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "msg",
                               "-sigfile", "sig"], cwd=d, capture_output=True).returncode == 0

def main(path, key=None, noted=None):
    prev, seq, chain, hashes, heads = "0" * 64, 0, None, {}, []
    with open(path, encoding="utf-8", newline="\n") as f:
        for n, line in enumerate(f, 1):
            try:
                whole = DECODER.decode(line)
                if set(whole) == {"body", "hash"}:
                    body, text = part(line, '{"body":')
                    seq += 1
                    chain = chain or body["chain"]
                    if hashlib.sha256(text).hexdigest() != whole["hash"]:
                        problems.append(f"line {n}: the hash is not that of the body")
                    if (body["prev"], body["seq"], body["chain"]) != (prev, seq, chain):
                        problems.append(f"line {n}: entry {body['seq']} does not follow the one before it")
                    prev = hashes[seq] = whole["hash"]
                elif set(whole) == {"head", "signature"}:
                    heads.append((n, *part(line, '{"head":'), whole["signature"]))
                else:
                    problems.append(f"line {n}: neither an entry nor a head")
            except (ValueError, KeyError, TypeError) as e:
                problems.append(f"line {n}: {e!r}")
    openssl = shutil.which("openssl")
    for n, head, text, signature in heads:
        if hashes.get(head["seq"]) != head["hash"] or head["chain"] != chain:
            problems.append(f"line {n}: entry {head['seq']} is not the one that was signed")
        if head["key"] != (key or heads[0][1]["key"]):
            problems.append(f"line {n}: signed with another key")
        elif openssl and not signed(head["key"], text, signature):
            problems.append(f"line {n}: the signature is wrong")
    last = max((h[1]["seq"] for h in heads), default=0)
    if last < seq:
        problems.append(f"entries after {last} stand under no signed head")
    if noted and noted not in hashes.values():
        problems.append(f"no entry has the hash {noted}")
    print(f"entries {seq}\nlast {prev}\nheads {len(heads)} through {last}")
    print("signatures", "checked" if openssl else "NOT checked: openssl is missing", "under", key or "the key in the export, which proves little")
    for p in problems:
        print("PROBLEM", p)
    return 1 if problems else 0

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
