//! A cache of which parameters of the shared child's tools have headers, filled from the child's `tools/list`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use http::HeaderMap;

use super::mirrors::{DeclaredHeader, declared};
use crate::limits;
use crate::upstream::text::{Json, RpcMessage, meta, quoted};

/// The header parameters of listed tools, by tool.
#[derive(Debug, Default)]
pub struct ToolHeaders(HashMap<String, Vec<DeclaredHeader>>);

impl ToolHeaders {
    /// Adds a page of `tools/list`.
    pub fn learn(&mut self, answer: &RpcMessage<'_>) {
        for tool in answer.at(&["result", "tools"]).map(Json::items).unwrap_or_default() {
            let (Some(name), Some(schema)) =
                (tool.get("name").and_then(Json::string), tool.get("inputSchema"))
            else {
                continue;
            };
            if self.0.len() < limits::CATALOG_TOOLS || self.0.contains_key(&name) {
                self.0.insert(name, declared(schema));
            }
        }
    }

    /// The headers for the parameters of a call. Empty if its tool is not listed.
    pub fn of_call(&self, call: &RpcMessage<'_>) -> HeaderMap {
        let tool = call.param("name").and_then(Json::string);
        let declared = tool.and_then(|tool| self.0.get(&tool)).into_iter().flatten();
        declared.filter_map(|one| one.for_arguments(call.param("arguments"))).collect()
    }
}

/// The cached header parameters of the child's tools.
#[derive(Debug, Default)]
pub struct Catalog {
    tools: ToolHeaders,
    asked: Option<Instant>,
}

impl Catalog {
    /// The header parameters of a tool; `None` if the child has to be asked. An unknown tool is asked for again after
    /// one second, because not every client may see every tool, but not for every call.
    pub fn get(&self, tool: &str) -> Option<&[DeclaredHeader]> {
        let age = self.asked.map(|asked| asked.elapsed());
        let known = self.tools.0.get(tool).map(Vec::as_slice);
        let fresh = if known.is_some() { limits::CATALOG_TIME } else { Duration::from_secs(1) };
        age.filter(|age| *age < fresh).map(|_| known.unwrap_or_default())
    }

    /// Empties the cache, before the child is asked.
    pub fn asking(&mut self) {
        self.tools.0.clear();
        self.asked = Some(Instant::now());
    }

    /// Adds a page of `tools/list`, and returns the cursor of the next page.
    pub fn learn(&mut self, answer: &RpcMessage<'_>) -> Option<String> {
        self.tools.learn(answer);
        answer.at(&["result", "nextCursor"])?.string()
    }
}

/// The request for a page of `tools/list`, with the version, capabilities and client info of the client's request.
pub fn page(request: &RpcMessage<'_>, cursor: Option<&str>) -> String {
    let kept = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];
    let client_meta =
        kept.iter().filter_map(|name| Some(format!("{}:{}", quoted(name), request.meta(name)?.raw())));
    let cursor = cursor.map(|cursor| format!(r#","cursor":{}"#, quoted(cursor))).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{"_meta":{{{}}}{cursor}}}}}"#,
        client_meta.collect::<Vec<_>>().join(",")
    )
}
