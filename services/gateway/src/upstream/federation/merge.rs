//! Merges the answers of several servers into one.
//!
//! A member that the gateway does not know is taken from the first server that has it. A capability is offered if any
//! server offers it. Cache lifetime and scope are the strictest of all (1.4).

use super::names::{ServerIndex, ServerNames};
use super::rewrite::item_outward;
use crate::limits;
use crate::upstream::text::{Json, quoted};

/// A result, with the index of its server.
pub type ServerResult<'a> = (ServerIndex, Json<'a>);

/// A JSON object under construction: member names with their raw JSON values.
#[derive(Clone, Debug, Default)]
struct ObjectBuilder(Vec<(String, String)>);

impl ObjectBuilder {
    fn set(&mut self, name: &str, value: impl Into<String>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.into(),
            None => self.0.push((name.to_owned(), value.into())),
        }
    }

    fn text(&self) -> String {
        let members = self.0.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// A response message with this raw id and result.
pub fn response(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Merges objects: the members of all of them. Members that are objects in all are merged in turn, `true` wins over
/// other values, otherwise the first object's value is taken.
pub fn united(objects: &[Json<'_>]) -> String {
    united_to(limits::UNITED_DEPTH, objects)
}

/// Below the maximum depth, which no MCP message reaches, the first value is taken unchanged.
fn united_to(depth: usize, objects: &[Json<'_>]) -> String {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in objects.iter().flat_map(|object| object.members()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut all = ObjectBuilder::default();
    for name in names {
        let values: Vec<Json<'_>> = objects.iter().filter_map(|object| object.get(&name)).collect();
        all.set(&name, united_value(depth, &values));
    }
    all.text()
}

fn united_value(depth: usize, values: &[Json<'_>]) -> String {
    if depth > 0 && values.iter().all(|value| value.is_object()) {
        return united_to(depth - 1, values);
    }
    if values.iter().any(|value| value.raw() == "true") {
        return "true".to_owned();
    }
    values.first().map_or("null", |value| value.raw()).to_owned()
}

/// The result of `initialize`, merged from all servers.
pub fn initialized(names: &ServerNames, parts: &[ServerResult<'_>], version: &str) -> String {
    let mut all = introduced(names, parts);
    all.set("protocolVersion", quoted(version));
    all.set("serverInfo", us());
    all.text()
}

/// The result of `server/discover`; `None` if the servers have no revision in common.
pub fn discovered(names: &ServerNames, parts: &[ServerResult<'_>]) -> Option<String> {
    let versions = |part: &ServerResult<'_>| -> Vec<String> {
        let versions = part.1.get("supportedVersions").map(Json::items).unwrap_or_default();
        versions.into_iter().filter_map(Json::string).collect()
    };
    let all_of = parts.iter().map(versions).collect::<Vec<_>>();
    let (first, rest) = all_of.split_first()?;
    let common: Vec<_> =
        first.iter().filter(|version| rest.iter().all(|other| other.contains(version))).collect();
    if common.is_empty() {
        return None;
    }
    let mut all = introduced(names, parts);
    all.set("supportedVersions", serde_json::json!(common).to_string());
    tighten(&mut all, parts);
    let metas: Vec<_> = parts.iter().filter_map(|(_, result)| result.get("_meta")).collect();
    if !metas.is_empty() {
        let united = united(&metas);
        let mut members = ObjectBuilder::default();
        for (name, value) in Json::whole(&united).map(Json::members).unwrap_or_default() {
            members.set(&name, value.raw());
        }
        members.set(SERVER_INFO, us());
        all.set("_meta", members.text());
    }
    Some(all.text())
}

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The server name and version that the client sees: the gateway, not one of the servers.
fn us() -> String {
    format!(r#"{{"name":"tabellion-gateway","version":{}}}"#, quoted(env!("CARGO_PKG_VERSION")))
}

fn introduced(names: &ServerNames, parts: &[ServerResult<'_>]) -> ObjectBuilder {
    let mut all = first_of_each(parts);
    let capabilities: Vec<_> = parts.iter().filter_map(|(_, result)| result.get("capabilities")).collect();
    all.set("capabilities", united(&capabilities));
    let instructions: Vec<String> = parts
        .iter()
        .filter_map(|(server, result)| Some((names.name_of(*server), result.get("instructions")?.string()?)))
        .map(|(server, text)| format!("# {server}\n\n{text}"))
        .collect();
    if !instructions.is_empty() {
        all.set("instructions", quoted(&instructions.join("\n\n")));
    }
    all
}

/// One page of a list: the items of all servers that were asked, and a cursor if any of them has more.
pub fn listed(names: &ServerNames, list: &str, parts: &[ServerResult<'_>]) -> String {
    let mut items = Vec::new();
    let mut cursors = vec![None; names.len()];
    for (server, result) in parts {
        for item in result.get(list).map(Json::items).unwrap_or_default() {
            items.push(String::from_utf8_lossy(&item_outward(names, *server, list, item)).into_owned());
        }
        cursors[*server] = result.get("nextCursor").and_then(Json::string);
    }
    let mut all = ObjectBuilder::default();
    all.set(list, format!("[{}]", items.join(",")));
    for (name, value) in first_of_each(parts).0 {
        if name != list && name != "nextCursor" {
            all.set(&name, value);
        }
    }
    if cursors.iter().any(Option::is_some) {
        all.set("nextCursor", quoted(&names.cursor_outside(&cursors)));
    }
    tighten(&mut all, parts);
    all.text()
}

fn first_of_each(parts: &[ServerResult<'_>]) -> ObjectBuilder {
    let mut all = ObjectBuilder::default();
    for (name, value) in parts.iter().flat_map(|(_, result)| result.members()) {
        if !all.0.iter().any(|(known, _)| *known == name) {
            all.set(&name, value.raw());
        }
    }
    all
}

/// Sets the shortest `ttlMs` (0 for a server without one), and `cacheScope` to `public` only if every server has it.
/// Each is set only if at least one server sends it.
fn tighten(all: &mut ObjectBuilder, parts: &[ServerResult<'_>]) {
    if parts.iter().any(|(_, result)| result.get("ttlMs").is_some()) {
        let times = parts.iter().map(|(_, result)| result.get("ttlMs").and_then(Json::integer).unwrap_or(0));
        all.set("ttlMs", times.min().unwrap_or(0).to_string());
    }
    let scope = |(_, result): &ServerResult<'_>| result.get("cacheScope").and_then(Json::string);
    if parts.iter().any(|part| scope(part).is_some()) {
        let public = parts.iter().all(|part| scope(part).as_deref() == Some("public"));
        all.set("cacheScope", if public { "\"public\"" } else { "\"private\"" });
    }
}

/// The acknowledgement of a subscription at all servers, merged from theirs.
pub fn acknowledged(names: &ServerNames, acks: &[ServerResult<'_>]) -> String {
    let params: Vec<Json<'_>> = acks.iter().filter_map(|(_, ack)| ack.get("params")).collect();
    let united = united(&params);
    let mut all = ObjectBuilder::default();
    for (name, value) in Json::whole(&united).map(Json::members).unwrap_or_default() {
        all.set(&name, value.raw());
    }
    let uris: Vec<String> = acks
        .iter()
        .flat_map(|(server, ack)| {
            let uris = ack.at(&["params", "notifications", "resourceSubscriptions"]).map(Json::items);
            uris.unwrap_or_default()
                .into_iter()
                .filter_map(|uri| Some(names.uri_outside(*server, &uri.string()?)))
        })
        .collect();
    let filters: Vec<Json<'_>> = params.iter().filter_map(|params| params.get("notifications")).collect();
    if !uris.is_empty() {
        let mut filter = ObjectBuilder::default();
        let united = self::united(&filters);
        for (name, value) in Json::whole(&united).map(Json::members).unwrap_or_default() {
            filter.set(&name, value.raw());
        }
        filter.set("resourceSubscriptions", serde_json::json!(uris).to_string());
        all.set("notifications", filter.text());
    }
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}}"#,
        all.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ServerNames {
        ServerNames::new(vec!["a".into(), "b".into()], ".").unwrap()
    }

    fn json(text: &str) -> Json<'_> {
        Json::whole(text).unwrap()
    }

    #[test]
    fn a_capability_is_there_if_any_server_has_it() {
        let all = united(&[
            json(r#"{"tools":{"listChanged":false},"x":{"n":1.0}}"#),
            json(r#"{"tools":{"listChanged":true},"prompts":{}}"#),
        ]);
        assert_eq!(all, r#"{"tools":{"listChanged":true},"x":{"n":1.0},"prompts":{}}"#);
    }

    #[test]
    fn a_list_has_the_items_of_all_as_they_were_written_but_for_their_names() {
        let a = r#"{"tools":[{"name":"x","n":1e2}],"nextCursor":"c","ttlMs":5,"cacheScope":"public"}"#;
        let b = r#"{"tools":[{ "name":"x" }],"ttlMs":3,"cacheScope":"private"}"#;
        let list = listed(&names(), "tools", &[(0, json(a)), (1, json(b))]);
        let cursor = names().cursor_outside(&[Some("c".into()), None]);
        let expected = format!(
            r#"{{"tools":[{{"name":"a.x","n":1e2}},{{ "name":"b.x" }}],"ttlMs":3,"cacheScope":"private","nextCursor":"{cursor}"}}"#
        );
        assert_eq!(list, expected);
    }

    #[test]
    fn a_capability_that_is_too_deep_is_taken_as_it_is() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
        assert_eq!(united(&[json(&deep), json("{}")]), deep);
    }

    #[test]
    fn servers_without_a_common_revision_are_not_one() {
        let (a, b) = (json(r#"{"supportedVersions":["x"]}"#), json(r#"{"supportedVersions":["y"]}"#));
        assert_eq!(discovered(&names(), &[(0, a), (1, b)]), None);
    }

    #[test]
    fn what_one_server_keeps_private_is_private() {
        let (a, b) = (
            json(r#"{"supportedVersions":["x"],"cacheScope":"public"}"#),
            json(r#"{"supportedVersions":["x"]}"#),
        );
        assert!(discovered(&names(), &[(0, a), (1, b)]).unwrap().contains(r#""cacheScope":"private""#));
    }

    #[test]
    fn instructions_say_whose_they_are() {
        let (a, b) = (json(r#"{"instructions":"A"}"#), json(r#"{"instructions":"B"}"#));
        let all = initialized(&names(), &[(0, a), (1, b)], "2025-06-18");
        assert!(all.contains(r##""instructions":"# a\n\nA\n\n# b\n\nB""##), "{all}");
    }
}
