//! A cache of which parameters of the shared child's tools have headers, filled from the child's `tools/list`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::mirrors::{DeclaredHeader, declared};
use crate::limits;
use crate::upstream::text::{Json, RpcMessage, meta, quoted};

/// The cached header parameters, by tool.
#[derive(Debug, Default)]
pub struct Catalog {
    tools: HashMap<String, Vec<DeclaredHeader>>,
    asked: Option<Instant>,
}

impl Catalog {
    /// The header parameters of a tool; `None` if the child has to be asked. An unknown tool is asked for again after
    /// one second, because not every client may see every tool, but not for every call.
    pub fn get(&self, tool: &str) -> Option<&[DeclaredHeader]> {
        let age = self.asked.map(|asked| asked.elapsed());
        let known = self.tools.get(tool).map(Vec::as_slice);
        let fresh = if known.is_some() { limits::CATALOG_TIME } else { Duration::from_secs(1) };
        age.filter(|age| *age < fresh).map(|_| known.unwrap_or_default())
    }

    /// Empties the cache, before the child is asked.
    pub fn asking(&mut self) {
        self.tools.clear();
        self.asked = Some(Instant::now());
    }

    /// Adds a page of `tools/list`, and returns the cursor of the next page.
    pub fn learn(&mut self, answer: &RpcMessage<'_>) -> Option<String> {
        for tool in answer.at(&["result", "tools"]).map(Json::items).unwrap_or_default() {
            let (Some(name), Some(schema)) =
                (tool.get("name").and_then(Json::string), tool.get("inputSchema"))
            else {
                continue;
            };
            if self.tools.len() < limits::CATALOG_TOOLS {
                self.tools.insert(name, declared(schema));
            }
        }
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
