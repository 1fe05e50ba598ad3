// The policies under which the vectors of content types are decided: that of the Rust tests, with the options of a case.
//
// `vectors/policy/sound/tests.json` has the policy as TOML; `crates/registration/tests` has the same changes to it.

/** The second operator, where a case needs two. */
const SECOND_OPERATOR = 'did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw';
/** The content types of AgentROA, with the name of the table of their options. */
const AGENTROA_TYPES = {
  'application/aer+json': 'aer',
  'application/agentroa-chain+json': null,
  'application/agentroa-registry+json': 'agentroa_registry',
  'application/agentroa-policy+json': null,
};

/** Writes a value of JSON as a value of TOML. */
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${name} = ${toml(item)}`)
    .join(', ')} }`;
}

/** Replaces the table of options of a type; members that the options do not have stay for Verdicts alone. */
function withOptions(rule, name, options) {
  const [own, table = ''] = rule.split(/\n\[(.*)/s);
  const before = table.split('\n').map((line) => line.split(/ = (.*)/)).filter((parts) => parts.length > 1);
  const kept = name === 'vap_verdict' ? Object.fromEntries(before) : {};
  const given = Object.fromEntries(Object.entries(options).map(([member, value]) => [member, toml(value)]));
  const members = Object.entries({ ...kept, ...given }).map(([member, text]) => `${member} = ${text}`);
  return `${own}\n${name} = { ${members.join(', ')} }\n`;
}

/** Returns the policy of a case as TOML. `base` is that of the Rust tests. */
export function policyFor(base, family, { options }) {
  let [head, ...rules] = base.split('\n[[type]]\n');
  const types = new Map(rules.map((rule) => [rule.split('"')[1], rule]));
  const change = (name, table, edit = (rule) => rule) => types.set(name, withOptions(edit(types.get(name)), table, options));
  if (family === 'aer') {
    change('application/aer+json', 'aer');
  } else if (family === 'vrf') {
    const anyDid = (rule) => rule.replace('["did:key:*"]', '["did:key:*", "did:jwk:*"]');
    for (const name of ['application/vrf+cbor', 'application/vrf+json']) change(name, 'vrf', anyDid);
  } else if (family === 'conversation') {
    types.delete('application/json');
    change('application/agent-conversation', 'conversation');
  } else if (family.startsWith('agentroa-')) {
    const decisive = family === 'agentroa-chain' ? 'aer' : 'agentroa_registry';
    for (const [name, table] of Object.entries(AGENTROA_TYPES)) {
      types.set(name, `content_type = "${name}"\n`);
      if (table === decisive) change(name, table);
    }
  }
  const ofVap = { 'application/vap-verdict+json': 'vap_verdict', 'application/vap-audit+json': 'vap_audit' };
  for (const [name, table] of Object.entries(ofVap)) {
    if (options[table]) types.set(name, withOptions(types.get(name), table, options[table]));
  }
  if (options.operator_actions) {
    head = `operator_actions = ${toml(options.operator_actions)}\n${head}\n[[operator]]\nkey = "${SECOND_OPERATOR}"\n`;
  }
  if (options.index) head = `index = ${toml(options.index)}\n${head}`;
  return [head, ...types.values()].join('\n[[type]]\n');
}
