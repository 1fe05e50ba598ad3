"""The policies under which the vectors of content types are decided: that of the Rust tests, with the options of a case.

`vectors/policy/sound/tests.json` has the policy as TOML; `crates/registration/tests` has the same changes to it.
"""

import json

#: The second operator, where a case needs two.
SECOND_OPERATOR = "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw"
#: The content types of AgentROA, with the name of the table of their options.
AGENTROA_TYPES = {
    "application/aer+json": "aer",
    "application/agentroa-chain+json": None,
    "application/agentroa-registry+json": "agentroa_registry",
    "application/agentroa-policy+json": None,
}


def toml(value):
    """Writes a value of JSON as a value of TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def with_options(rule, name, options):
    """Replaces the table of options of a type; members that the options do not have stay for Verdicts alone."""
    own, _, table = rule.partition("\n[")
    members = {name: toml(value) for name, value in options.items()}
    if name == "vap_verdict":
        before = dict(line.split(" = ", 1) for line in table.splitlines() if " = " in line)
        members = {**before, **members}
    return own + f"\n{name} = {{ " + ", ".join(f"{name} = {text}" for name, text in members.items()) + " }\n"


def policy_for(base, family, case):
    """Returns the policy of a case as TOML. `base` is that of the Rust tests."""
    head, *rules = base.split("\n[[type]]\n")
    options = case.get("options") or {}
    types = {rule.split('"')[1]: rule for rule in rules}
    if family == "aer":
        types["application/aer+json"] = with_options(types["application/aer+json"], "aer", options)
    elif family == "vrf":
        for name in ("application/vrf+cbor", "application/vrf+json"):
            rule = types[name].replace('["did:key:*"]', '["did:key:*", "did:jwk:*"]')
            types[name] = with_options(rule, "vrf", options)
    elif family == "conversation":
        del types["application/json"]
        name = "application/agent-conversation"
        types[name] = with_options(types[name], "conversation", options)
    elif family.startswith("agentroa-"):
        decisive = "aer" if family == "agentroa-chain" else "agentroa_registry"
        for name, table in AGENTROA_TYPES.items():
            rule = f'content_type = "{name}"\n'
            types[name] = with_options(rule, table, options) if table == decisive else rule
    for name, table in (("application/vap-verdict+json", "vap_verdict"), ("application/vap-audit+json", "vap_audit")):
        if table in options:
            types[name] = with_options(types[name], table, options[table])
    if "operator_actions" in options:
        head = f'operator_actions = {toml(options["operator_actions"])}\n{head}\n[[operator]]\nkey = "{SECOND_OPERATOR}"\n'
    if "index" in options:
        head = f'index = {toml(options["index"])}\n{head}'
    return "\n[[type]]\n".join([head, *types.values()])
