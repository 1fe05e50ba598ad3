"""A session of an agent whose tools are Python functions, recorded and verified."""

from pathlib import Path

import tabellion


@tabellion.tool(expected_effect="the sum")
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


log = tabellion.dev_log()
with tabellion.session(
    goal="add the invoices",
    tools=["add"],
    budget={"max_calls": 2},
    key=log.key,
    issuer=log.issuer,
    log=log.client,
    save_as="session.cose",
) as session:
    assert add(add(1, 2), 3) == 6
    try:
        add(6, 4)
    except tabellion.Denied as denied:
        assert denied.code == "budget_exceeded"

# The record was signed, registered and verified. Anybody verifies it again, offline.
verdict = tabellion.verify(Path("session.cose").read_bytes(), log.trust)
assert verdict["outcome"] == "verified", verdict
print(session.registered.entry)
