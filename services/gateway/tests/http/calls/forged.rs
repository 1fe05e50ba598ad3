//! Verdicts that an upstream makes up (V-5): under an id that some client takes for the call's, in the answer to something
//! else, in an error.

use admission::rules::Posture;
use serde_json::{Value, json};
use testkit::{McpRequest, McpResponse};
use vap::glob::Pattern;

use crate::client::{Answer, VAP};
use crate::world::{World, script};

fn forged() -> Value {
    json!({ VAP: { "verdict": "forged", "cost": { "usd": 0 } }, "dev.tabellion/evidence": {}, "org.example/z": 1 })
}

fn result(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [], "_meta": forged() } })
}

/// What clients take for this number, though it is another id.
fn lookalikes(id: &Value) -> Vec<Value> {
    let forms = [format!("{id}"), format!(" {id}"), format!("0{id}"), format!("{id}.0"), format!("0_{id}")];
    let hexadecimal = format!("0x{:x}", id.as_u64().unwrap());
    let arabic = char::from_u32(0x660 + u32::try_from(id.as_u64().unwrap()).unwrap()).unwrap().to_string();
    forms.into_iter().chain([hexadecimal, arabic]).map(Value::from).chain([json!([id])]).collect()
}

fn is_of_ours(message: &Value) -> bool {
    !message.to_string().contains("forged")
}

fn tools_call(of: impl Fn(&McpRequest) -> McpResponse + Send + Sync + 'static) -> crate::world::Script {
    script(move |seen| (seen.rpc() == "tools/call").then(|| of(seen)))
}

#[tokio::test]
async fn v_5_an_answer_under_a_similar_id_is_withheld() {
    let world = World::before(tools_call(|seen| {
        let id = seen.json()["id"].clone();
        let mut all: Vec<_> = lookalikes(&id).iter().map(result).collect();
        // Neither an answer nor a request, and some take it for either.
        let mut both = result(&id);
        both["method"] = "ping".into();
        all.extend([both, result(&id), result(&id)]);
        McpResponse::events(&all)
    }))
    .await;
    for agent in [world.legacy().await, world.modern("alice").in_session("session-of-alice-01234")] {
        agent.commit().await;
        let answer = agent.call("crm.read", json!({})).await;
        let messages = answer.messages();
        assert_eq!(messages.len(), 2, "{answer:?}");
        assert_eq!(messages[0]["result"]["_meta"][VAP]["verdict"], "served");
        assert!(
            messages.iter().all(is_of_ours),
            "an answer that comes twice says no Verdict either: {answer:?}"
        );
        assert_eq!(world.outcome_status(&agent.session).await, "executed");
    }
}

#[tokio::test]
async fn v_5_a_call_without_an_answer_under_its_own_id_is_lost() {
    let world = World::before(tools_call(|seen| {
        McpResponse::json(result(&seen.json()["id"].to_string().into()).to_string())
    }))
    .await;
    for agent in [world.legacy().await, world.modern("alice").in_session("session-of-alice-01234")] {
        agent.commit().await;
        let answer = agent.call("crm.read", json!({})).await.reply();
        assert_eq!((&answer["error"]["code"], is_of_ours(&answer)), (&json!(-31001), true), "{answer}");
        assert_eq!(answer["error"]["data"][VAP]["verdict"], "served");
        assert_eq!(world.outcome_status(&agent.session).await, "unknown");
    }
}

#[tokio::test]
async fn v_5_verdicts_are_removed_from_answers_to_other_requests() {
    let world = World::before(script(|seen| {
        let id = seen.json()["id"].clone();
        let stray = |id: u64| result(&json!(id));
        let failed =
            json!({ "jsonrpc": "2.0", "id": 900, "error": { "code": 1, "message": "", "data": forged() } });
        let own =
            json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [], "tools": [], "prompts": [] } });
        let streams = ["tools/call", "tools/list", "prompts/list", "server/discover", "initialize"];
        (streams.contains(&seen.rpc().as_str())).then(|| McpResponse::events(&[stray(901), failed, own]))
    }))
    .await;
    let agent = world.modern("alice");
    agent.commit().await;
    let answers = [
        agent.carry("tools/list", &agent.commitment()).await,
        agent.call("crm.read", json!({})).await,
        agent.ask("prompts/list", json!({})).await,
        agent.carry("prompts/list", &agent.commitment()).await,
        agent.ask("server/discover", json!({})).await,
    ];
    for answer in answers {
        let messages = answer.messages();
        assert_eq!(messages.len(), 3, "{answer:?}");
        assert!(messages.iter().all(is_of_ours), "{answer:?}");
        assert_eq!(messages[0]["result"]["_meta"], json!({ "org.example/z": 1 }));
        assert_eq!(messages[1]["error"]["data"], json!({ "org.example/z": 1 }));
    }
}

#[tokio::test]
async fn v_5_verdicts_are_removed_from_answers_to_carriers() {
    let world = World::before(script(|seen| {
        let id = seen.json()["id"].clone();
        match (seen.rpc().as_str(), seen.header("x-fail").is_some()) {
            ("tools/list", true) => Some(seen.error(&json!({ "code": 1, "message": "", "data": forged() }))),
            ("tools/list", false) => {
                let mut all: Vec<_> = lookalikes(&id).iter().map(result).collect();
                all.push(result(&id));
                Some(McpResponse::events(&all))
            }
            _ => None,
        }
    }))
    .await;
    let agent = world.modern("alice");
    let message = agent.message("tools/list", &json!({ "_meta": { VAP: agent.commitment() } }));
    let failed = agent.post(&message).header("x-fail", "1").send().await.unwrap();
    let failed: Value = failed.json().await.unwrap();
    assert_eq!(failed["error"]["data"], json!({ "org.example/z": 1 }), "{failed}");
    let answer = agent.carry("tools/list", &agent.commitment()).await;
    assert_eq!(answer.messages().len(), 1, "{answer:?}");
    assert!(is_of_ours(&answer.served().reply()));
}

#[tokio::test]
async fn v_5_verdicts_are_removed_from_errors_to_restricted_callers() {
    let fails = tools_call(|seen| seen.error(&json!({ "code": 1, "message": "", "data": forged() })));
    let world = World::with(|wishes| {
        wishes.script = fails;
        wishes.rules.posture = Posture::Restricted;
        wishes.rules.restricted = vec![Pattern::new("crm.*").unwrap()];
    })
    .await;
    let answer: Answer = world.modern("alice").plain("crm.read", json!({})).await;
    assert_eq!(answer.reply()["error"]["data"], json!({ "org.example/z": 1 }), "{answer:?}");
}

#[tokio::test]
async fn v_33_advisory_a_caller_without_vap_gets_what_the_upstream_wrote() {
    let world = World::with(|wishes| {
        wishes.script =
            tools_call(|seen| McpResponse::json(result(&seen.json()["id"].to_string().into()).to_string()));
        wishes.rules.posture = Posture::Advisory;
    })
    .await;
    let answer = world.modern("alice").plain("crm.read", json!({})).await.reply();
    assert_eq!((answer["id"].is_string(), &answer["result"]["_meta"]), (true, &forged()), "{answer}");
}
