//! The scope in effect: what is omitted is inherited, and no hop widens any dimension.

use proptest::prelude::*;
use roa::capability::Grant;
use roa::scope::{Budget, Scope};
use serde_json::{Map, Value, json};

use crate::world::*;

#[test]
fn r_4_what_a_hop_omits_is_inherited_by_those_after_it() {
    let chain = root_chain(|root| {
        let scope = root["authorized_scope"].as_object_mut().unwrap();
        scope.extend([("budget_ceiling".into(), json!(5)), ("budget_unit".into(), json!("USD"))]);
        scope.extend([("price_class".into(), json!(2)), ("slo_class".into(), json!(3))]);
        scope.insert("data_classification_ceiling".into(), json!("internal"));
    });
    let silent = delegate(&chain, |_| ());
    let widened = |member: &'static str, value: Value| {
        let chain = delegate(&silent, |hop| {
            hop["delegated_scope"][member] = value;
            if member == "budget_ceiling" {
                hop["delegated_scope"]["budget_unit"] = "USD".into();
            }
        });
        denied(&chain)
    };
    let hop = Some(2);
    assert_eq!(widened("budget_ceiling", json!(5.5)), ("budget_expansion_denied", "ceiling", hop));
    assert_eq!(widened("price_class", json!(3)), ("budget_expansion_denied", "price", hop));
    assert_eq!(widened("slo_class", json!(2)), ("slo_relaxation_denied", "slo", hop));
    assert_eq!(
        widened("data_classification_ceiling", json!("secret")),
        ("scope_expansion_violation", "classification", hop)
    );
    assert_eq!(
        widened("capabilities", json!(["mcp:files.write"])),
        ("scope_expansion_violation", "capabilities", hop)
    );
}

#[test]
fn r_6_a_budget_in_another_unit_is_denied_though_its_number_is_smaller() {
    let chain = root_chain(|root| {
        root["authorized_scope"]["budget_ceiling"] = 5000.into();
        root["authorized_scope"]["budget_unit"] = "tokens".into();
    });
    let swapped = delegate(&chain, |hop| {
        hop["delegated_scope"]["budget_ceiling"] = 4000.into();
        hop["delegated_scope"]["budget_unit"] = "USD".into();
    });
    assert_eq!(denied(&swapped), ("budget_expansion_denied", "unit", Some(1)));
}

#[test]
fn r_12_an_unknown_classification_is_denied_even_at_the_root() {
    let chain = root_chain(|root| root["authorized_scope"]["data_classification_ceiling"] = "cosmic".into());
    assert_eq!(denied(&chain), ("scope_expansion_violation", "classification", Some(0)));
}

#[test]
fn r_43_a_call_counts_in_the_ledger_of_every_hop_that_declares_a_budget() {
    let budget = |amount: u32| {
        move |scope: &mut Value| {
            scope["budget_ceiling"] = amount.into();
            scope["budget_unit"] = "USD".into();
        }
    };
    let root = root_chain(|root| budget(10)(&mut root["authorized_scope"]));
    let chain = delegate(&root, |_| ());
    let chain = delegate(&chain, |hop| budget(4)(&mut hop["delegated_scope"]));
    let chain = delegate(&chain, |hop| hop["delegated_scope"]["budget_unit"] = "tokens".into());
    let verified = verify(&chain).unwrap();
    let ledgers: Vec<_> =
        verified.ledgers().iter().map(|ledger| (ledger.hop, ledger.budget.ceiling.to_string())).collect();
    assert_eq!(ledgers, [(0, "10".to_owned()), (2, "4".to_owned())]);
    assert_eq!(
        verified.ledgers()[0].object,
        root.root().digest(),
        "siblings share the ledger of their parent"
    );
}

/// A scope with members drawn from small sets, so that hops often narrow and often widen.
fn scope() -> impl Strategy<Value = Map<String, Value>> {
    let capabilities = proptest::sample::subsequence(
        vec!["mcp:github.*", "mcp:github.read", "mcp:files.read", "mcp:files.write"],
        1..=4,
    );
    let classification = proptest::sample::select(vec!["public", "internal", "secret"]);
    let optional = (
        proptest::option::weighted(0.4, 0u32..4),
        proptest::option::weighted(0.4, 0u32..4),
        proptest::option::weighted(0.4, 0u32..4),
        proptest::option::weighted(0.4, classification),
        proptest::option::weighted(0.3, 0u32..4),
    );
    (capabilities, optional).prop_map(|(capabilities, (budget, price, slo, label, depth))| {
        let mut scope = Map::from_iter([("capabilities".to_owned(), json!(capabilities))]);
        let mut put =
            |name: &str, value: Option<Value>| value.map(|value| scope.insert(name.to_owned(), value));
        put("budget_ceiling", budget.map(Into::into));
        put("budget_unit", budget.map(|_| "USD".into()));
        put("price_class", price.map(Into::into));
        put("slo_class", slo.map(Into::into));
        put("data_classification_ceiling", label.map(Into::into));
        put("max_delegation_depth", depth.map(Into::into));
        scope
    })
}

/// Returns whether a scope grants no more than another, on any dimension.
fn is_within(narrow: &Scope, wide: &Scope) -> bool {
    let at_most = |a: Option<u32>, b: Option<u32>| b.is_none_or(|b| a.is_some_and(|a| a <= b));
    let rank = |scope: &Scope| {
        let label = scope.classification.as_ref();
        label.map(|label| u32::try_from(registry().classifications().rank(label.as_str()).unwrap()).unwrap())
    };
    let budget = |scope: &Scope| scope.budget.as_ref().map(|Budget { ceiling, .. }| *ceiling);
    let covered = |grant: &Grant| {
        wide.capabilities
            .grants()
            .any(|other| other == grant || (other.is_wildcard() && other.server() == grant.server()))
    };
    narrow.capabilities.grants().all(covered)
        && narrow.depth < wide.depth
        && at_most(narrow.price_class, wide.price_class)
        && at_most(rank(narrow), rank(wide))
        && wide.slo_class.is_none_or(|floor| narrow.slo_class.is_some_and(|slo| slo >= floor))
        && budget(wide).is_none_or(|ceiling| budget(narrow).is_some_and(|amount| amount <= ceiling))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_scope_in_effect_never_grows(root in scope(), hops in proptest::collection::vec(scope(), 0..4)) {
        let chain = root_chain(|members| {
            let scope = members["authorized_scope"].as_object_mut().unwrap();
            scope.extend(root.clone());
            scope.insert("max_delegation_depth".into(), 4.into());
        });
        let mut chain = root_chain_with_cross_org(chain);
        for hop in &hops {
            chain = delegate(&chain, |members| members["delegated_scope"] = Value::Object(hop.clone()));
        }
        if let Ok(verified) = verify(&chain) {
            for pair in verified.scopes().windows(2) {
                prop_assert!(is_within(&pair[1], &pair[0]), "{:?} within {:?}", pair[1], pair[0]);
            }
            // A prefix of an accepted chain is accepted, with the same scopes.
            let prefix = roa::chain::Chain::new(chain.root().clone(), chain.hops()[..hops.len() / 2].to_vec());
            let shorter = verify(&prefix).unwrap();
            prop_assert_eq!(shorter.scopes(), &verified.scopes()[..shorter.scopes().len()]);
        }
    }
}

/// The fourth delegate is of another organisation.
fn root_chain_with_cross_org(chain: roa::chain::Chain) -> roa::chain::Chain {
    let mut members: Value = serde_json::from_slice(chain.root().canonical()).unwrap();
    members.as_object_mut().unwrap().remove("signatures");
    members["authorized_scope"]["cross_org_permitted"] = true.into();
    roa::chain::Chain::new(signed(members, &["acme:authorizer:1"]), Vec::new())
}
