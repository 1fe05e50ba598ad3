//! What is for the gateway does not reach the server (V-35), and what is for the audit does not reach whoever decides (X-6).

use crate::front::{DONE, PassThrough, Scribe, Settings};

async fn world(settings: Settings) -> PassThrough {
    PassThrough::set(settings, |_, wire| wire.json(DONE)).await
}

fn message(method: &str, meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t","_meta":{{{meta}}}}}}}"#)
}

#[tokio::test]
async fn vap_material_is_stripped_and_every_other_key_stays() {
    let world = world(Settings::default()).await;
    for method in ["tools/call", "initialize", "tools/list", "ping", "vendor/x", "server/discover"] {
        let body = message(
            method,
            r#""a":1.0,"vap":{"secret":1},"dev.tabellion/vap":{"secret":1}, "progressToken":"\u0031","dev.tabellion/roa":[],"dev.tabellion/roa-proof":"x","com.vap/vap":{}"#,
        );
        world.post(body).send().await.unwrap();
        let expected = message(method, r#""a":1.0, "progressToken":"\u0031","com.vap/vap":{}"#);
        assert_eq!(world.requests().last().unwrap().text(), expected);
    }
    let notes = world.notes.all();
    assert_eq!(notes.iter().filter(|note| *note == r#"carrier {"secret":1}"#).count(), 5);
    assert!(notes.iter().any(|note| note.starts_with("call") && note.contains("secret")));
}

#[tokio::test]
async fn a_callers_reasons_reach_the_server_and_are_kept_from_the_decision() {
    for key in ["io.modelcontextprotocol/aiInvocation", "dev.tabellion/aiInvocation"] {
        let world = world(Settings::default()).await;
        let body = message(
            "tools/call",
            &format!(r#""a":1,"{key}":{{"turnId":"t-1","userIntent":{{"text":"private"}}}}"#),
        );
        world.post(body.clone()).send().await.unwrap();
        assert_eq!(world.requests()[0].text(), body);
        let notes = world.notes.all();
        assert_eq!(notes[0], format!("call {}", message("tools/call", r#""a":1"#)));
        assert!(notes.iter().any(|note| note.starts_with(&format!("aside {key}")) && note.contains("t-1")));
        assert!(!notes.concat().contains("private"));
    }
}

#[tokio::test]
async fn an_operator_can_keep_a_callers_reasons_from_the_server() {
    let world = world(Settings { forward_invocation: false, ..Settings::default() }).await;
    for method in ["tools/call", "prompts/get"] {
        let body = message(method, r#""io.modelcontextprotocol/aiInvocation":{"turnId":"t-1"},"a":1"#);
        world.post(body).send().await.unwrap();
        assert_eq!(world.requests().last().unwrap().text(), message(method, r#""a":1"#));
    }
}

#[tokio::test]
async fn an_amendment_is_answered_by_the_gateway() {
    let world = world(Settings::default()).await;
    let answer = world.post(message("vap/amend", r#""vap":{}"#)).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"vap/amend","params":{}}"#;
    assert_eq!(world.post(note).send().await.unwrap().status(), 400);
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn gated_methods_are_shown_to_the_handlers() {
    let scribe = Scribe { gated: vec!["resources/read".into(), "tasks/update".into()], ..Scribe::default() };
    let world = PassThrough::with(scribe, Settings::default(), |_, wire| wire.json(DONE)).await;
    for method in ["resources/read", "tasks/update", "prompts/get"] {
        world.post(message(method, "")).send().await.unwrap();
    }
    let gated: Vec<_> = world.notes.all().into_iter().filter(|note| note.starts_with("gated")).collect();
    assert_eq!(gated, ["gated resources/read", "gated tasks/update"]);
    assert_eq!(world.requests().len(), 3);
}
