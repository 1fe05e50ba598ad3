#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use admission::rules::{Posture, Then};
use admission::signature::Holder;
use decimal::Decimal;
use scitt::Signer;

use super::*;

const AGENT: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a-1"}"#;

/// The example configuration of the specification, with `more` appended.
fn text(more: &str) -> String {
    format!(
        r#"issuer = "https://gw.example"
listen = "127.0.0.1:7400"
state  = "./gw"
[log]
url = "http://127.0.0.1:7390"
receipt_required = false
[[agent]]
id  = "did:example:a"
jwk = "agent.pub.json"
[[route]]
path = "/mcp"
upstream = "http://127.0.0.1:3001/mcp"   # or command = ["mcp-server-time"]
without_vap = "deny"                      # deny | restricted | advisory
signed = "optional"                       # optional | required
ceiling = {{ max_calls = 500 }}
{more}"#
    )
}

const RULE: &str = r#"[[route.rule]]
name = "large"
tool = "payments.send"
when = "input.arguments.amount > 1000"
then = "confirm"
"#;

fn read(text: &str) -> Result<Config, Mistakes> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.pub.json"), AGENT).unwrap();
    Config::from_toml(text, folder.path())
}

/// The lines and keys of the mistakes.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    let told = read(text).unwrap_err();
    told.0.into_iter().map(|mistake| (mistake.line.unwrap_or(0), mistake.key)).collect()
}

#[test]
fn the_configuration_of_the_specification_reads() {
    let config = read(&text(RULE)).unwrap();
    assert_eq!(config.issuer, "https://gw.example");
    assert_eq!(config.log.url, "http://127.0.0.1:7390");
    assert_eq!(config.agents[0].holder, Holder::Agent("did:example:a".to_owned()));
    assert_eq!(config.agents[0].keys[0].kid(), Some("a-1"));
    assert!(
        config.hosts.contains(&"gw.example".to_owned()) && config.hosts.contains(&"localhost".to_owned())
    );
    assert_eq!((config.outbox.records, config.intake.body_bytes), (1_000_000, 4 << 20));
    let route = config.route("/mcp").unwrap();
    assert_eq!((route.without_vap, route.signed), (Posture::Deny, Requirement::Optional));
    assert_eq!(route.ceiling.max_calls, Some(500));
    assert_eq!((route.rules[0].name().as_str(), route.rules[0].then()), ("large", Then::Confirm));
    assert!(matches!(&config.evidence, Evidence::Sqlite(path) if path.ends_with("gw/evidence.db")));
    assert_eq!(config.evidence_keep, None, "for ever");
}

#[test]
fn amounts_keep_the_digits_that_were_written() {
    let more = "[route.cost]\nstrict = true\ndefault = { usd = 0.10 }\ncap = { usd = 1_000 }\n\
                [route.cost.tools]\nsend = { usd = \"0.3\", tokens = 9007199254740993 }\n";
    let config = read(&text(more)).unwrap();
    let costs = &config.routes[0].costs;
    assert!(costs.strict);
    let amount = |text| Decimal::read(text).unwrap();
    assert_eq!((costs.default.of("usd"), costs.cap.of("usd")), (amount("0.1"), amount("1000")));
    assert_eq!(costs.tools[0].1.of("tokens"), amount("9007199254740993"));
    assert_eq!(costs.tools[0].1.of("usd"), amount("0.3"));
}

#[test]
fn everything_else_can_be_said_too() {
    let more = r#"
without_vap = "restricted"
"#;
    assert_eq!(mistakes(&text(more)), [(17, "config".to_owned())], "one key, twice");

    let whole = r#"
issuer = "did:web:gw.example"
listen = "0.0.0.0:7400"
admin_listen = "127.0.0.1:7401"
public_url = "https://gw.example"
state = "gw"
evidence = "postgres://gw@db/evidence"
evidence_keep = "90d"
hosts = ["GW.example"]
origins = ["https://app.example", "http://localhost:3000"]
session_idle = "2h"

[log]
url = "https://log.example/"
receipt_required = true
receipt_wait = "2s"
trust = "trust.toml"

[outbox]
records = 10
bytes = "1MiB"
age = "1h"

[limits]
body_bytes = "1MiB"
requests_per_second = 10
burst = 20

[judge]
url = "http://127.0.0.1:9000/v1"
model = "m"
timeout = "250ms"
sample_rate = 0.5
cap = 20

[[approver]]
name = "carol"
routes = ["/all"]
jwk = "agent.pub.json"
not_before = "2026-01-01T00:00:00Z"
not_after = "2027-01-01T00:00:00Z"

[[route]]
path = "/all"
separator = "__"
without_vap = "restricted"
restricted = ["time.*"]
signed = "required"
freshness = "required"
gated = ["resources/read"]
forward_invocation = false
filter_tools = true
timeout = "30s"
judge = false
amendments_signed = false
ceiling = { lasts = "8h", latest = "2027-01-01T00:00:00Z" }
principal_ceiling = { max_calls = 10, window = "1d", limits = { usd = 5 } }
sensitivity = { "pay.*" = ["writes_money", "sends_external"], "time.*" = "reads" }
risk = { threshold = 0.7, weights = { looping = 0.4 } }
[[route.server]]
prefix = "time"
command = ["mcp-server-time"]
env = { TZ = "UTC" }
children = 3
[[route.server]]
prefix = "pay"
upstream = "https://pay.example/mcp"
upstream_token_file = "pay.token"
upstream_headers = { "X-Tenant" = "7" }

[[route]]
path = "/guarded"
upstream = "https://up.example/mcp"
[route.oauth]
mode = "upstream"
resource = "https://up.example/mcp"
metadata = "https://up.example/.well-known/oauth-protected-resource/mcp"
issuer = "https://as.example"
jwks_url = "https://as.example/jwks"
scopes = ["mcp:tools"]
algorithms = ["ES256"]
"#;
    let config = read(whole).unwrap();
    assert_eq!(config.hosts, ["gw.example"]);
    assert_eq!(config.log.url, "https://log.example");
    assert_eq!(config.evidence_keep, Some(Duration::from_secs(90 * 86_400)));
    assert_eq!(config.judge.as_ref().unwrap().timeout, Duration::from_millis(250));
    let UpstreamConfig::Many { servers, separator } = &config.routes[0].upstream else { panic!("one") };
    assert_eq!(separator, "__");
    assert_eq!(servers.iter().map(|(prefix, _)| prefix.as_str()).collect::<Vec<_>>(), ["time", "pay"]);
    let oauth = config.routes[1].oauth.as_ref().unwrap();
    assert_eq!(oauth.audience, "https://up.example/mcp");
    assert_eq!(oauth.authorization_servers, ["https://as.example"]);
}

#[test]
fn a_receipt_that_nobody_could_verify_is_not_required() {
    let required = text("").replace("receipt_required = false", "receipt_required = true");
    assert_eq!(mistakes(&required), [(6, "log.receipt_required".to_owned())]);
    let believed =
        required.replace("receipt_required = true", "receipt_required = true\ntrust = \"trust.toml\"");
    assert!(read(&believed).unwrap().log.receipt_required);
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let more = r#"freshness = "sometimes"
gated = ["tools/list"]
[route.oauth]
mode = "either"
issuer = "https://as.example"
jwks = "jwks.json"
[[route.rule]]
name = "broken"
when = "input.arguments.amount >"
then = "deny"
[[route]]
path = "/mcp"
[[route]]
path = "/.well-known/x"
upstream = "ftp://x"
"#;
    let told = mistakes(&text(more).replace("\"127.0.0.1:7400\"", "\"7400\""));
    let expected = [
        (2, "listen"),
        (16, "freshness"),
        (17, "gated"),
        (19, "oauth.mode"),
        (24, "rule.when"),
        (26, "route"),
        (27, "route.path"),
        (29, "route.path"),
        (30, "upstream"),
    ];
    assert_eq!(told, expected.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn a_key_that_is_not_known_is_an_error_with_its_line() {
    let told = read(&text("withou_vap = \"advisory\"\n")).unwrap_err();
    assert_eq!(told.0[0].line, Some(16));
    assert!(told.to_string().contains("withou_vap"), "{told}");
}

#[test]
fn a_mistake_quotes_no_secret() {
    let told = read(&text("").replace("http://127.0.0.1:7390", "https://u:hunter2@log.example")).unwrap_err();
    assert!(!told.to_string().contains("hunter2"), "{told}");
    let told = read("secret = \"hunter2\nissuer=").unwrap_err();
    assert!(!told.to_string().contains("hunter2"), "{told}");
}

#[test]
fn v_28_a_judge_that_samples_nothing_is_refused() {
    let more = "[judge]\nurl = \"http://127.0.0.1:9000/v1\"\nmodel = \"m\"\nsample_rate = 0.0\n";
    assert_eq!(mistakes(&text(more)), [(19, "judge.sample_rate".to_owned())]);
}

#[test]
fn r_27_a_route_has_one_mode_and_mode_b_names_its_server() {
    let oauth = |rest: &str| {
        text(&format!(
            "[route.oauth]\nissuer = \"https://as.example\"\njwks_url = \"https://as.example/jwks\"\n{rest}"
        ))
    };
    let a = read(&oauth("mode = \"gateway\"\n")).unwrap();
    assert_eq!(a.routes[0].oauth.as_ref().unwrap().audience, "https://gw.example/mcp");
    assert_eq!(mistakes(&oauth("mode = \"upstream\"\n"))[0].1, "oauth.resource");
    assert_eq!(
        mistakes(&oauth("mode = \"upstream\"\nresource = \"https://up.example\"\n"))[0].1,
        "oauth.metadata"
    );
    assert_eq!(mistakes(&oauth("mode = \"gateway\"\nalgorithms = [\"HS256\"]\n"))[0].1, "oauth.algorithms");
    assert_eq!(mistakes(&oauth("mode = \"gateway\"\nalgorithms = [\"none\"]\n"))[0].1, "oauth.algorithms");
}

#[test]
fn a_prefix_cannot_hold_the_separator() {
    let whole = text("").replace("upstream = \"http://127.0.0.1:3001/mcp\"", "")
        + "[[route.server]]\nprefix = \"a.b\"\ncommand = [\"x\"]\n";
    assert_eq!(mistakes(&whole), [(17, "route.server.prefix".to_owned())]);
}

#[test]
fn a_prefix_begins_with_a_letter_and_is_not_another_one_in_capitals() {
    let servers = "[[route.server]]\nprefix = \"time\"\ncommand = [\"x\"]\n\
                   [[route.server]]\nprefix = \"Time\"\ncommand = [\"y\"]\n\
                   [[route.server]]\nprefix = \"7up\"\ncommand = [\"z\"]\n";
    let whole = text("").replace("upstream = \"http://127.0.0.1:3001/mcp\"", "") + servers;
    assert_eq!(mistakes(&whole), [20, 23].map(|line| (line, "route.server.prefix".to_owned())));
}

#[test]
fn a_mistake_at_the_top_hides_none_below() {
    let rule = "[[route.rule]]\nname = \"r\"\nthen = \"maybe\"\n";
    let whole =
        text(rule).replace("https://gw.example", "https://gw.example/path").replace("\"/mcp\"", "\"mcp\"");
    let keys: Vec<String> = mistakes(&whole).into_iter().map(|(_, key)| key).collect();
    assert_eq!(keys, ["public_url", "route.path", "rule.then"]);
}

#[test]
fn an_agent_whose_key_cannot_be_read_is_a_mistake_and_a_private_one_too() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Config::from_toml(&text(""), folder.path()).is_err());
    let private = AGENT.replace("}", ",\"d\":\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\"}");
    std::fs::write(folder.path().join("agent.pub.json"), private).unwrap();
    let told = Config::from_toml(&text(""), folder.path()).unwrap_err();
    assert!(told.to_string().contains("line 9: agent.jwk") && told.to_string().contains("private"), "{told}");
}

#[test]
fn what_needs_a_new_start_is_told() {
    let old = read(&text("")).unwrap();
    let mut new = old.clone();
    new.routes.clear();
    assert!(old.needs_restart(&new).is_empty());
    new.issuer = "https://other.example".into();
    new.state = Path::new("/elsewhere").into();
    assert_eq!(old.needs_restart(&new), ["issuer", "state"]);
}

#[test]
fn the_example_for_operators_reads_and_what_is_commented_out_in_it_does_too() {
    let folder = tempfile::tempdir().unwrap();
    let example = std::fs::read_to_string("../../deploy/gateway.toml").unwrap();
    Config::from_toml(&example, folder.path()).unwrap();

    std::fs::write(folder.path().join("agent.pub.json"), AGENT).unwrap();
    let file = folder.path().join("agent.pub.json").display().to_string();
    fn setting(line: &str) -> Option<&str> {
        line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('['))
    }
    let whole: Vec<&str> = example.lines().map(|line| setting(line).unwrap_or(line)).collect();
    let whole = whole.join("\n");
    let whole = ["agent-a.pub.json", "approver.pub.json"]
        .into_iter()
        .fold(whole, |text, name| text.replace(&format!("/etc/tabellion/{name}"), &file));
    let operator = folder.path().join("operator.json");
    std::fs::write(&operator, testkit::gateway().public_key().to_jwk().to_value().to_string()).unwrap();
    let operator = operator.display().to_string();
    let whole = whole.replace("/etc/tabellion/registry-operator.pem", &operator);
    let config = Config::from_toml(&whole, folder.path()).unwrap();
    assert_eq!((config.routes.len(), config.agents.len()), (2, 2));
    assert!(config.judge.is_some() && config.routes[0].oauth.is_some() && config.agentroa.is_some());
}

#[test]
fn a_registry_and_its_deltas_are_a_file_or_an_address_each() {
    let section = |sources: &str| {
        let keys = "registry_keys = [\"agent.pub.json\"]\ngateway_id = \"gw-1\"\nsigner = \"acme:gateway\"";
        text(&format!("[agentroa]\n{sources}\n{keys}\n"))
    };
    let sources = |written: &str| {
        let agentroa = read(&section(written)).unwrap().agentroa.unwrap();
        (agentroa.source, agentroa.deltas)
    };
    let url = |path: &str| RegistrySource::Url(format!("https://registry.example/{path}").parse().unwrap());
    let (registry, deltas) = sources("registry = \"r.json\"\ndeltas = \"d.json\"");
    assert!(matches!(registry, RegistrySource::File(path) if path.ends_with("r.json")));
    assert!(matches!(deltas, Some(RegistrySource::File(path)) if path.ends_with("d.json")));
    let both = "registry_url = \"https://registry.example/r\"\ndeltas_url = \"https://registry.example/d\"";
    assert_eq!(sources(both), (url("r"), Some(url("d"))));
    assert_eq!(sources("registry_url = \"https://registry.example/r\""), (url("r"), None));
    let keys =
        |written: &str| mistakes(&section(written)).into_iter().map(|(_, key)| key).collect::<Vec<_>>();
    assert_eq!(keys("deltas = \"d.json\""), ["agentroa.registry"]);
    let twice = "registry = \"r.json\"\ndeltas = \"d.json\"\ndeltas_url = \"https://registry.example/d\"";
    assert_eq!(keys(twice), ["agentroa.deltas"]);
    assert_eq!(
        keys("registry = \"r.json\"\ndeltas_url = \"ftp://registry.example/d\""),
        ["agentroa.deltas_url"]
    );
}

#[test]
fn chains_are_registered_in_clear_only_where_receipts_are_or_the_operator_says_so() {
    let registers = |settings: &str| {
        let section = "registry = \"r.json\"\nregistry_keys = [\"agent.pub.json\"]\ngateway_id = \"gw-1\"\nsigner = \"s\"";
        let written = text(&format!("[agentroa]\n{section}\n{settings}\n"));
        read(&written).unwrap().agentroa.unwrap().register_chains
    };
    assert!(registers("") && registers("receipts = \"hash\"\nregister_chains = true"));
    assert!(!registers("receipts = \"hash\"") && !registers("register_chains = false"));
}

#[test]
fn a_classification_that_is_no_label_is_a_mistake() {
    let classified =
        |label: &str| text(&format!("[route.tool_class]\n\"pay.*\" = {{ classification = \"{label}\" }}\n"));
    let config = read(&classified("secret")).unwrap();
    assert_eq!(config.routes[0].authority.classes[0].1.classification.as_deref(), Some("secret"));
    for label in ["", "a\\u0001", &"x".repeat(257)] {
        assert_eq!(mistakes(&classified(label)), [(17, "tool_class.pay.*.classification".to_owned())]);
    }
}

#[test]
fn a_gated_method_is_not_also_the_name_of_a_tool() {
    let route = |prefix: &str| {
        text("").replace("upstream = \"http://127.0.0.1:3001/mcp\"", "")
            + "gated = [\"resources/read\"]\nseparator = \"/\"\nroa = \"advisory\"\n[[route.server]]\n"
            + &format!("prefix = \"{prefix}\"\ncommand = [\"x\"]\n")
    };
    let keys = |text: &str| mistakes(text).into_iter().map(|(_, key)| key).collect::<Vec<_>>();
    assert_eq!(keys(&route("crm")), ["agentroa"], "there is no registry");
    assert_eq!(keys(&route("resources")), ["agentroa", "gated"]);
}

#[test]
fn what_a_started_server_may_use_is_said_beside_its_command() {
    let command = |settings: &str| {
        text("").replace("upstream = \"http://127.0.0.1:3001/mcp\"", "command = [\"mcp-server-time\"]")
            + settings
    };
    let config = read(&command(
        "user = \"1200:1300\"\nmemory = \"1GiB\"\nprocesses = 10\nopen_files = 20\nfolder = \"work\"\nwritable = [\"/data\"]",
    ));
    let config = config.unwrap();
    let Some(Server::Command(server)) = config.routes[0].upstream.servers().next() else { panic!() };
    assert_eq!(server.user.as_ref().map(|user| (user.uid, user.gid)), Some((1200, 1300)));
    let limits = (server.limits.memory, server.limits.processes, server.limits.open_files);
    assert_eq!(limits, (1 << 30, 10, 20));
    let work = config.state.parent().unwrap().join("work");
    assert_eq!(server.writable, [Path::new("/data").to_owned(), work], "and where it is started");
    let keys = |text: &str| mistakes(text).into_iter().map(|(_, key)| key).collect::<Vec<_>>();
    assert_eq!(keys(&command("user = \"root\"")), ["user"]);
    assert_eq!(keys(&command("processes = 0\nopen_files = 0")), ["processes", "open_files"]);
    for setting in ["user = \"1:1\"", "memory = 1", "processes = 1", "open_files = 1", "writable = []"] {
        assert_eq!(keys(&text(setting)), ["route"], "{setting} goes with a command");
    }
}

#[test]
fn a_call_takes_as_long_as_a_route_says_and_no_longer_than_a_week() {
    let hour = Duration::from_secs(3600);
    assert_eq!(read(&text("")).unwrap().routes[0].call_timeout, hour);
    assert_eq!(read(&text("call_timeout = \"7d\"")).unwrap().routes[0].call_timeout, 7 * 24 * hour);
    for wrong in ["\"0s\"", "\"8d\"", "\"long\""] {
        let keys: Vec<_> = mistakes(&text(&format!("call_timeout = {wrong}")));
        assert_eq!(keys.into_iter().map(|(_, key)| key).collect::<Vec<_>>(), ["call_timeout"], "{wrong}");
    }
}

#[test]
fn another_request_takes_five_minutes_or_as_long_as_the_server_may_be_silent_or_as_a_route_says() {
    let time = |more: &str| read(&text(more)).unwrap().routes[0].request_timeout;
    let minute = Duration::from_secs(60);
    assert_eq!(time(""), 5 * minute);
    assert_eq!(time("timeout = \"1m\""), 5 * minute);
    assert_eq!(time("timeout = \"20m\""), 20 * minute);
    assert_eq!(time("timeout = \"30d\""), 7 * 24 * 60 * minute);
    assert_eq!(time("timeout = \"20m\"\nrequest_timeout = \"10s\""), minute / 6);
    for wrong in ["\"0s\"", "\"8d\"", "\"long\""] {
        let keys: Vec<_> = mistakes(&text(&format!("request_timeout = {wrong}")));
        assert_eq!(keys.into_iter().map(|(_, key)| key).collect::<Vec<_>>(), ["request_timeout"], "{wrong}");
    }
}

#[test]
fn arguments_are_as_long_as_a_route_says_and_no_longer_than_a_message() {
    assert_eq!(read(&text("")).unwrap().routes[0].arguments_bytes, 64 << 10);
    assert_eq!(read(&text("arguments_bytes = \"1MiB\"")).unwrap().routes[0].arguments_bytes, 1 << 20);
    for wrong in ["0", "\"65MiB\"", "\"much\""] {
        let keys: Vec<_> = mistakes(&text(&format!("arguments_bytes = {wrong}")));
        assert_eq!(keys.into_iter().map(|(_, key)| key).collect::<Vec<_>>(), ["arguments_bytes"], "{wrong}");
    }
}

#[test]
fn r_27_a_client_s_token_goes_to_one_server_or_to_none() {
    let route = |servers: &str| {
        text(&format!(
            r#"
[[route]]
path = "/guarded"
{servers}
[route.oauth]
mode = "upstream"
resource = "https://up.example/mcp"
metadata = "https://up.example/.well-known/oauth-protected-resource/mcp"
issuer = "https://as.example"
jwks_url = "https://as.example/jwks"
"#
        ))
    };
    assert!(read(&route("upstream = \"https://up.example/mcp\"")).is_ok());
    for server in [
        "command = [\"mcp-server-time\"]",
        "upstream = \"https://up.example/mcp\"\nupstream_token_file = \"own.token\"",
    ] {
        let keys: Vec<String> = mistakes(&route(server)).into_iter().map(|(_, key)| key).collect();
        assert_eq!(keys, ["oauth.mode"], "{server}");
    }
}

#[test]
fn the_example_for_operators_shows_every_setting() {
    let example = std::fs::read_to_string("../../deploy/gateway.toml").unwrap();
    let words: Vec<&str> = example.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for field in include_str!("file.rs").lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
        let Some((name, _)) = field.split_once(": ") else { continue };
        // A table of a kind is named in the singular.
        let name = name.strip_suffix('s').filter(|one| words.contains(one)).unwrap_or(name);
        assert!(words.contains(&name), "{name} is in no line of deploy/gateway.toml");
    }
}

#[test]
fn the_meter_of_a_judge_has_one_unit() {
    use crate::judge::Meter;
    let amounts = |lines: &str| {
        let judge = format!("[judge]\nurl = \"http://127.0.0.1:9000/v1\"\nmodel = \"m\"\n{lines}\n");
        let judge = read(&text(&judge))?.judge.unwrap();
        Ok::<_, Mistakes>((judge.meter, judge.cost.to_string(), judge.cap.to_string()))
    };
    assert_eq!(amounts(""), Ok((Meter::Answers, "1".into(), "100".into())));
    assert_eq!(amounts("meter = \"tokens\""), Ok((Meter::Tokens, "1000".into(), "100000".into())));
    assert_eq!(amounts("cost = 3\ncap = 9"), Ok((Meter::Answers, "3".into(), "9".into())));
    assert!(amounts("meter = \"words\"").is_err());
}
