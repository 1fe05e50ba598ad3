"""Registers a statement at a log, verifies it offline, follows the log's entries, and monitors the log."""

from pathlib import Path

import tabellion

log = tabellion.dev_log()  # what `tabellion serve --dev` wrote into this folder

# Sign and register. The file is written before the first attempt, and holds the Transparent Statement at the end.
statement = tabellion.sign_statement(
    log.key, b'{"result":42}', content_type="application/json", subject="invoice-7", issuer=log.issuer
)
registered = log.client.register(statement, "invoice-7.cose")

# Verify offline: all keys come from the trust file.
verdict = tabellion.verify(Path("invoice-7.cose").read_bytes(), log.trust)
assert verdict["outcome"] == "verified", verdict

# A fresh receipt, attached by hand, is as good, unless the statement or its certificate has ended since.
receipt = log.client.receipt(registered.entry)
log.client.verify(tabellion.attach(statement.bytes, [receipt]))

# Register a statement that does not contain its payload.
payload = b'{"result":43}'
detached = tabellion.sign_statement(
    log.key, payload, content_type="application/json", subject="invoice-9", issuer=log.issuer, detached=True
)
log.client.register(detached, "invoice-9.cose", payload=payload)

# Follow all entries from the first.
for event in log.client.follow(begin=True):
    if event.entry["entry_id"] == registered.entry:
        break

# Monitor: verify that the log only grew since the last call.
seen = log.client.monitor_once("monitor.json")
assert log.client.monitor_once("monitor.json").previous_size == seen.size
print(registered.entry)
