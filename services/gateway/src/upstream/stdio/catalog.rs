//! Which parameters of the shared child's tools have headers: asked of the child, and remembered for a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::mirrors::{Declared, declared};
use crate::limits;
use crate::upstream::text::{Json, Message, meta, quoted};

/// What is known of the tools.
#[derive(Debug, Default)]
pub struct Catalog {
    tools: HashMap<String, Vec<Declared>>,
    asked: Option<Instant>,
}

impl Catalog {
    /// What is known of a tool; none if the child is to be asked. A tool that is not known is asked for again soon, as
    /// not everybody may see every tool, but not for every call.
    pub fn get(&self, tool: &str) -> Option<&[Declared]> {
        let age = self.asked.map(|asked| asked.elapsed());
        let known = self.tools.get(tool).map(Vec::as_slice);
        let fresh = if known.is_some() { limits::CATALOG_TIME } else { Duration::from_secs(1) };
        age.filter(|age| *age < fresh).map(|_| known.unwrap_or_default())
    }

    /// It is about to be asked.
    pub fn asking(&mut self) {
        self.tools.clear();
        self.asked = Some(Instant::now());
    }

    /// Learns a page of the list, and gives the cursor of the next.
    pub fn learn(&mut self, answer: &Message<'_>) -> Option<String> {
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

/// The request for a page, in the name of whoever made this request.
pub fn page(request: &Message<'_>, cursor: Option<&str>) -> String {
    let kept = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];
    let said = kept.iter().filter_map(|name| Some(format!("{}:{}", quoted(name), request.meta(name)?.raw())));
    let cursor = cursor.map(|cursor| format!(r#","cursor":{}"#, quoted(cursor))).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{"_meta":{{{}}}{cursor}}}}}"#,
        said.collect::<Vec<_>>().join(",")
    )
}
