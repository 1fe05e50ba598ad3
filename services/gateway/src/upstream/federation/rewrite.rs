//! Rewrites messages between one server and the federation's client: only the names in them change.
//!
//! Names change only in the members where the protocol has them. A URI in an argument or in a tool's text is not
//! recognizably one and stays unchanged.

use bytes::Bytes;

use super::names::{ServerIndex, ServerNames};
use crate::frame::NOTIFICATIONS_CANCELLED;
use crate::upstream::text::{Edits, Json, RpcKind, RpcMessage, meta, quoted};

/// The destination of a request that names something of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTarget<'a> {
    /// The server.
    pub server: ServerIndex,
    /// The name in the request's text.
    pub part: Json<'a>,
    /// The name at the server.
    pub inside: String,
}

/// The kind and place of the name in a request whose method goes to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A tool or prompt, with the path of its name.
    Name(&'static [&'static str]),
    /// A resource, with the path of its URI.
    Uri(&'static [&'static str]),
    /// A task, named by `params.taskId`.
    Task,
    /// A prompt or resource reference, of `completion/complete`.
    Reference,
}

/// The kind of name in requests with this method. `None` if the method goes to all servers or is unknown.
pub fn named(method: &str) -> Option<NameKind> {
    Some(match method {
        "tools/call" | "prompts/get" => NameKind::Name(&["params", "name"]),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            NameKind::Uri(&["params", "uri"])
        }
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => NameKind::Task,
        "completion/complete" => NameKind::Reference,
        _ => return None,
    })
}

/// The destination of a request; `None` if it names no server of the federation.
pub fn target<'a>(names: &ServerNames, request: &RpcMessage<'a>, named: NameKind) -> Option<NamedTarget<'a>> {
    let by_name = |part: Json<'a>| {
        let name = part.string()?;
        let (server, inside) = names.inside(&name)?;
        Some(NamedTarget { server, part, inside: inside.to_owned() })
    };
    let by_uri = |part: Json<'a>| {
        let uri = part.string()?;
        let (server, inside) = names.uri_inside(&uri)?;
        Some(NamedTarget { server, part, inside: inside.to_owned() })
    };
    match named {
        NameKind::Name(path) => by_name(request.at(path)?),
        NameKind::Task => by_name(request.at(&["params", "taskId"])?),
        NameKind::Uri(path) => by_uri(request.at(path)?),
        NameKind::Reference => match request.at(&["params", "ref", "name"]) {
            Some(name) => by_name(name),
            None => by_uri(request.at(&["params", "ref", "uri"])?),
        },
    }
}

/// The request with the names that its server uses.
pub fn inward(names: &ServerNames, request: &RpcMessage<'_>, target: &NamedTarget<'_>) -> Bytes {
    let mut edits = Edits::of(request.text());
    edits.replace(target.part, quoted(&target.inside));
    let task = request.meta(meta::RELATED_TASK).and_then(|task| task.get("taskId"));
    task_inward(names, task, &mut edits);
    edits.done()
}

/// The client's response to a server's request with the id that the server wrote, and that server.
pub fn reply_inward(names: &ServerNames, reply: &RpcMessage<'_>) -> Option<(ServerIndex, Bytes)> {
    let id = reply.id()?;
    let (server, raw) = names.id_inside(id)?;
    let mut edits = Edits::of(reply.text());
    edits.replace(id, raw);
    task_inward(names, reply.at(&["result", "_meta", meta::RELATED_TASK, "taskId"]), &mut edits);
    Some((server, edits.done()))
}

fn task_inward<'a>(names: &ServerNames, task: Option<Json<'a>>, edits: &mut Edits<'a>) {
    let Some((part, name)) = task.and_then(|part| Some((part, part.string()?))) else { return };
    if let Some((_, inside)) = names.inside(&name) {
        edits.replace(part, quoted(inside));
    }
}

/// A server's message with the names that the client sees. `None` if nothing changes.
pub fn outward(names: &ServerNames, server: ServerIndex, text: &[u8]) -> Option<Bytes> {
    let message = RpcMessage::read_bytes(text)?;
    let mut out = Outward { names, server, edits: Edits::of(message.text()) };
    match message.kind {
        RpcKind::Request => out.question(&message),
        RpcKind::Notification => out.notification(&message),
        RpcKind::Response => {
            if let Some(result) = message.get("result") {
                out.result(result);
            }
        }
    }
    (!out.edits.is_empty()).then(|| out.edits.done())
}

/// A list item with the names that the client sees.
pub fn item_outward(names: &ServerNames, server: ServerIndex, list: &str, item: Json<'_>) -> Bytes {
    let mut out = Outward { names, server, edits: Edits::of(item.raw()) };
    match list {
        "tools" | "prompts" => out.name(item.get("name")),
        "resources" => out.uri(item.get("uri")),
        "resourceTemplates" => out.uri(item.get("uriTemplate")),
        _ => out.name(item.get("taskId")),
    }
    // In the extension "MCP Apps", the page that displays a tool is a resource.
    out.uri(item.at(&["_meta", "ui", "resourceUri"]));
    out.uri(item.at(&["_meta", "ui/resourceUri"]));
    out.edits.done()
}

struct Outward<'n, 'a> {
    names: &'n ServerNames,
    server: ServerIndex,
    edits: Edits<'a>,
}

impl<'a> Outward<'_, 'a> {
    fn question(&mut self, message: &RpcMessage<'a>) {
        self.id(message.id());
        self.id(message.meta(meta::PROGRESS_TOKEN));
        self.name(message.meta(meta::RELATED_TASK).and_then(|task| task.get("taskId")));
    }

    fn notification(&mut self, message: &RpcMessage<'a>) {
        self.name(message.meta(meta::RELATED_TASK).and_then(|task| task.get("taskId")));
        match message.method().unwrap_or_default().as_str() {
            NOTIFICATIONS_CANCELLED => self.id(message.param("requestId")),
            "notifications/resources/updated" => self.uri(message.param("uri")),
            "notifications/tasks" | "notifications/tasks/status" => self.name(message.param("taskId")),
            _ => {}
        }
    }

    /// Rewrites a result of any method. In the modern tasks extension, the result of a task contains the result of its
    /// call.
    fn result(&mut self, result: Json<'a>) {
        self.parts(result);
        if let Some(inner) = result.get("result").filter(|_| result.get("taskId").is_some()) {
            self.parts(inner);
        }
    }

    fn parts(&mut self, result: Json<'a>) {
        for (name, value) in result.members() {
            match name.as_str() {
                "content" => self.blocks(value),
                "messages" => {
                    value.items().into_iter().filter_map(|one| one.get("content")).for_each(|content| {
                        self.block(content);
                        self.blocks(content);
                    })
                }
                "contents" => value.items().into_iter().for_each(|one| self.uri(one.get("uri"))),
                "task" => self.name(value.get("taskId")),
                "taskId" => self.name(Some(value)),
                "_meta" => self.name(value.at(&[meta::RELATED_TASK, "taskId"])),
                _ => {}
            }
        }
    }

    fn blocks(&mut self, blocks: Json<'a>) {
        blocks.items().into_iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: Json<'a>) {
        match block.get("type").and_then(Json::string).as_deref() {
            Some("resource_link") => self.uri(block.get("uri")),
            Some("resource") => self.uri(block.at(&["resource", "uri"])),
            _ => {}
        }
    }

    fn id(&mut self, part: Option<Json<'a>>) {
        if let Some(part) = part {
            self.edits.replace(part, self.names.id_outside(self.server, part));
        }
    }

    fn name(&mut self, part: Option<Json<'a>>) {
        if let Some((part, name)) = part.and_then(|part| Some((part, part.string()?))) {
            self.edits.replace(part, quoted(&self.names.outside(self.server, &name)));
        }
    }

    fn uri(&mut self, part: Option<Json<'a>>) {
        if let Some((part, uri)) = part.and_then(|part| Some((part, part.string()?))) {
            self.edits.replace(part, quoted(&self.names.uri_outside(self.server, &uri)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ServerNames {
        ServerNames::new(vec!["a".into(), "b".into()], ".").unwrap()
    }

    fn out(text: &str) -> String {
        let same = || text.to_owned().into();
        String::from_utf8(outward(&names(), 1, text.as_bytes()).unwrap_or_else(same).to_vec()).unwrap()
    }

    #[test]
    fn only_the_names_of_a_request_change_on_the_way_in() {
        let text = r#"{"id":1e0, "method":"tools/call","params":{"name" : "b.x.y","arguments":{"name":"b.x","n":1.0}}}"#;
        let message = RpcMessage::read(text).unwrap();
        let target = target(&names(), &message, named("tools/call").unwrap()).unwrap();
        assert_eq!(target.server, 1);
        assert_eq!(inward(&names(), &message, &target), text.replace("\"b.x.y\"", "\"x.y\"").as_bytes());
    }

    #[test]
    fn resources_in_answers_have_the_names_by_which_they_are_read() {
        let text = r#"{"id":1,"result":{"content":[{"type":"text","text":"file:///x"},{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"file:///y"}}]}}"#;
        let expected = text.replace("\"uri\":\"file", "\"uri\":\"b+file");
        assert_eq!(out(text), expected);
        let read = r#"{"id":1,"result":{"contents":[{"uri":"u:1","text":"{}"}]}}"#;
        assert_eq!(out(read), read.replace("u:1", "b+u:1"));
        let prompt = r#"{"id":1,"result":{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"u:1"}}}]}}"#;
        assert_eq!(out(prompt), prompt.replace("u:1", "b+u:1"));
    }

    #[test]
    fn what_has_no_names_is_the_same_byte_for_byte() {
        for text in [
            r#"{ "id":1,"result":{"structuredContent":{"uri":"u:1","taskId":"t","content":[{"type":"resource_link","uri":"x"}]}}}"#,
            r#"{"method":"notifications/progress","params":{"progressToken":"a.b","progress":1.0}}"#,
            r#"{"id":1,"error":{"code":-32602,"message":"a","data":{"uri":"u:1"}}}"#,
        ] {
            assert!(outward(&names(), 1, text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_question_and_its_answer_find_their_way_with_the_id_that_the_server_wrote() {
        let question =
            out(r#"{"id":0,"method":"elicitation/create","params":{"_meta":{"progressToken":"p"}}}"#);
        let expected =
            r#"{"id":"b:0","method":"elicitation/create","params":{"_meta":{"progressToken":"b:\"p\""}}}"#;
        assert_eq!(question, expected);
        let reply = r#"{"id":"b:0","result":{ "action":"accept" }}"#;
        let (server, text) = reply_inward(&names(), &RpcMessage::read(reply).unwrap()).unwrap();
        assert_eq!((server, &text[..]), (1, &br#"{"id":0,"result":{ "action":"accept" }}"#[..]));
    }

    #[test]
    fn tasks_are_named_by_their_server() {
        let created = r#"{"id":1,"result":{"task":{"taskId":"t","status":"working"}}}"#;
        assert_eq!(out(created), created.replace("\"t\"", "\"b.t\""));
        let related = r#"{"id":7,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
        assert!(out(related).contains(r#""taskId":"b.t""#));
    }
}
