//! Outlines: what a chain says of its hops to a reader who has no registry.

use roa::outline::{OutlinedHop, outline};
use serde_json::json;

use crate::world::*;

fn withheld(hop: &OutlinedHop) -> Vec<String> {
    hop.withheld.iter().map(ToString::to_string).collect()
}

#[test]
fn each_hop_has_what_is_in_effect_and_what_it_lost() {
    let chain = root_chain(|root| {
        root["authorized_scope"]["budget_ceiling"] = 5.into();
        root["authorized_scope"]["budget_unit"] = "USD".into();
        root["authorized_scope"]["data_classification_ceiling"] = "an unknown label".into();
    });
    let narrow = delegate(&chain, |hop| {
        hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]);
        hop["delegated_scope"]["budget_ceiling"] = 2.into();
        hop["delegated_scope"]["budget_unit"] = "USD".into();
    });
    let hops = outline(&delegate(&narrow, |hop| {
        hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]);
    }));
    let root = chain.root().document();
    assert_eq!((hops[0].expires_at, hops[1].expires_at), (Some(root.expires_at), None));
    assert_eq!(hops[0].holder, root.session.agent_id);
    let before: Vec<String> = root.authorized_scope.capabilities.grants().map(ToString::to_string).collect();
    assert_eq!(withheld(&hops[1]), before, "a wildcard is not within one of its tools");
    assert_eq!(withheld(&hops[2]), Vec::<String>::new());
    let last = hops[2].scope.clone().unwrap().unwrap();
    assert_eq!(last.budget.unwrap().ceiling, 2.into(), "inherited");
    assert_eq!(last.classification.unwrap().as_str(), "an unknown label", "only a registry orders them");
}

#[test]
fn a_hop_that_declares_more_is_named_and_no_scope_is_in_effect_after_it() {
    let narrow =
        delegate(&chain_of(0), |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.read"]));
    let wide = delegate(&narrow, |hop| hop["delegated_scope"]["capabilities"] = json!(["mcp:github.*"]));
    let hops = outline(&delegate(&wide, |_| ()));
    let denial = hops[2].scope.clone().unwrap().unwrap_err();
    assert_eq!(summary(&denial), ("scope_expansion_violation", "capabilities", Some(2)));
    assert_eq!(hops[3].scope, None);
}
