//! The scope in effect: what is omitted is inherited, and no hop widens any dimension.

use decimal::Decimal;
use proptest::prelude::*;
use roa::capability::Grant;
use roa::chain::Chain;
use roa::denial::Dimension;
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
        root.root().content_digest(),
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
        proptest::option::weighted(0.4, (0u32..4, proptest::sample::select(vec!["USD", "USD", "tokens"]))),
        proptest::option::weighted(0.4, 0u32..4),
        proptest::option::weighted(0.4, 0u32..4),
        proptest::option::weighted(0.4, classification),
        proptest::option::weighted(0.3, 0u32..4),
    );
    (capabilities, optional).prop_map(|(capabilities, (budget, price, slo, label, depth))| {
        let mut scope = Map::from_iter([("capabilities".to_owned(), json!(capabilities))]);
        let mut put =
            |name: &str, value: Option<Value>| value.map(|value| scope.insert(name.to_owned(), value));
        put("budget_ceiling", budget.map(|(amount, _)| amount.into()));
        put("budget_unit", budget.map(|(_, unit)| unit.into()));
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
    let is_within_budget = |wide: &Budget| {
        narrow.budget.as_ref().is_some_and(|b| b.unit == wide.unit && b.ceiling <= wide.ceiling)
    };
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
        && wide.budget.as_ref().is_none_or(is_within_budget)
}

/// Asserts that the scope at each hop is within the scopes at all hops before it.
fn assert_never_grows(scopes: &[Scope]) -> Result<(), TestCaseError> {
    for (hop, narrow) in scopes.iter().enumerate() {
        for wide in &scopes[..hop] {
            prop_assert!(is_within(narrow, wide), "{narrow:?} within {wide:?}");
        }
    }
    Ok(())
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
            assert_never_grows(verified.scopes())?;
            // A prefix of an accepted chain is accepted, with the same scopes.
            let prefix = Chain::new(chain.root().clone(), chain.hops()[..hops.len() / 2].to_vec());
            let shorter = verify(&prefix).unwrap();
            prop_assert_eq!(shorter.scopes(), &verified.scopes()[..shorter.scopes().len()]);
        }
    }
}

/// The fourth delegate is of another organisation.
fn root_chain_with_cross_org(chain: Chain) -> Chain {
    let mut members: Value = serde_json::from_slice(chain.root().canonical()).unwrap();
    members.as_object_mut().unwrap().remove("signatures");
    members["authorized_scope"]["cross_org_permitted"] = true.into();
    Chain::new(signed(members, &["acme:authorizer:1"]), Vec::new())
}

/// The dimensions of a scope, each with levels from 0 that grant more and more.
const DIMENSIONS: [Dimension; 6] = [
    Dimension::Capabilities,
    Dimension::Depth,
    Dimension::Budget,
    Dimension::Price,
    Dimension::Slo,
    Dimension::Classification,
];

/// The levels of the capabilities. The tools of today's manifest are less than their wildcard.
const CAPABILITIES: [&[&str]; 5] = [
    &["mcp:github.read"],
    &["mcp:github.read", "mcp:github.write"],
    &["mcp:github.*"],
    &["mcp:files.read", "mcp:github.*"],
    &["mcp:files.read", "mcp:files.write", "mcp:github.*"],
];

/// The level of each dimension, in the order of [`DIMENSIONS`]; `None` if it has no bound.
type Levels = [Option<u32>; 6];

/// What a hop declares: on each dimension, the number of levels that it falls, or `None` for what it omits.
type Steps = [Option<u32>; 6];

const HIGHEST: [u32; 6] = [4, 20, 16, 8, 8, 2];

/// Declares a level on a dimension.
fn declare(scope: &mut Value, dimension: Dimension, level: u32) {
    match dimension {
        Dimension::Capabilities => scope["capabilities"] = json!(CAPABILITIES[level as usize]),
        Dimension::Depth => scope["max_delegation_depth"] = level.into(),
        Dimension::Budget => {
            scope["budget_ceiling"] = json!(f64::from(level) / 4.0);
            scope["budget_unit"] = "USD".into();
        }
        Dimension::Price => scope["price_class"] = level.into(),
        Dimension::Slo => scope["slo_class"] = (10 - level).into(),
        Dimension::Classification => {
            scope["data_classification_ceiling"] =
                ["public", "internal", "secret", "cosmic"][level as usize].into();
        }
        Dimension::Organization => unreachable!("organisations have no levels"),
    }
}

/// Returns the level in effect after a hop.
fn fallen(dimension: Dimension, level: Option<u32>, step: Option<u32>, highest: u32) -> Option<u32> {
    match (dimension, step) {
        (Dimension::Depth, step) => level.map(|level| level - 1 - step.unwrap_or(0)),
        (_, None) => level,
        (_, Some(step)) => Some(level.unwrap_or(highest).saturating_sub(step)),
    }
}

/// A root that bounds any of its dimensions, and hops that omit any of theirs.
fn levels() -> impl Strategy<Value = (Levels, Vec<Steps>)> {
    let bounds = proptest::collection::vec(proptest::bool::weighted(0.7), 6);
    let step = || proptest::option::weighted(0.5, 0u32..3);
    let hops = proptest::collection::vec([step(), step(), step(), step(), step(), step()], 0..4);
    (bounds, hops).prop_map(|(bounds, mut hops)| {
        let is_bounded = |n: usize| n < 2 || bounds[n];
        let root = std::array::from_fn(|n| is_bounded(n).then_some(HIGHEST[n]));
        hops.iter_mut().for_each(|hop| hop[0] = hop[0].or(Some(0)));
        (root, hops)
    })
}

/// Returns the chain of these levels, and the levels in effect at each of its objects.
fn chain_of_levels(root: Levels, hops: &[Steps]) -> (Chain, Vec<Levels>) {
    let chain = root_chain(|members| {
        let scope = &mut members["authorized_scope"];
        scope["capabilities"] = json!([]);
        for (dimension, level) in DIMENSIONS.into_iter().zip(root) {
            level.into_iter().for_each(|level| declare(scope, dimension, level));
        }
        scope["cross_org_permitted"] = true.into();
    });
    let mut levels = vec![root];
    let chain = hops.iter().fold(chain, |chain, steps| {
        let before = levels[levels.len() - 1];
        let after = std::array::from_fn(|n| fallen(DIMENSIONS[n], before[n], steps[n], HIGHEST[n]));
        levels.push(after);
        delegate(&chain, |members| declare_steps(&mut members["delegated_scope"], *steps, after))
    });
    (chain, levels)
}

/// Declares the levels of a hop. Where it omits the budget, it declares a unit without an amount.
fn declare_steps(scope: &mut Value, steps: Steps, after: Levels) {
    for (n, dimension) in DIMENSIONS.into_iter().enumerate() {
        if let (Some(_), Some(level)) = (steps[n], after[n]) {
            declare(scope, dimension, level);
        }
    }
    if scope["budget_ceiling"].is_null() {
        scope.as_object_mut().unwrap().remove("budget_ceiling");
        scope["budget_unit"] = "tokens".into();
    }
}

/// Returns the scope that has these levels.
fn scope_of_levels(levels: Levels) -> Scope {
    let [capabilities, depth, budget, price_class, slo, label] = levels;
    let names = CAPABILITIES[capabilities.unwrap() as usize];
    let amount = |level: u32| Decimal::read(&(f64::from(level) / 4.0).to_string()).unwrap();
    Scope {
        capabilities: serde_json::from_value(json!(names)).unwrap(),
        depth: depth.unwrap(),
        budget: budget.map(|level| Budget { ceiling: amount(level), unit: "USD".parse().unwrap() }),
        price_class,
        slo_class: slo.map(|level| 10 - level),
        classification: label.map(|level| ["public", "internal", "secret"][level as usize].parse().unwrap()),
    }
}

/// Appends a hop that declares one level more than there is on a dimension, and nothing on the others.
fn widened(chain: &Chain, levels: Levels, n: usize, level: u32) -> Chain {
    delegate(chain, |members| {
        let scope = &mut members["delegated_scope"];
        declare(scope, Dimension::Capabilities, levels[0].unwrap());
        match DIMENSIONS[n] {
            Dimension::Capabilities if level == HIGHEST[n] => {
                scope["capabilities"] = json!(["mcp:mail.send"])
            }
            // A depth has to fall, so to keep it is one more than there is.
            Dimension::Depth => declare(scope, Dimension::Depth, level),
            dimension => declare(scope, dimension, level + 1),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn r_4_the_scope_is_the_meet_of_all_hops_whatever_they_omit((root, hops) in levels()) {
        let (chain, levels) = chain_of_levels(root, &hops);
        let verified = verify(&chain).unwrap();
        let expected: Vec<Scope> = levels.iter().copied().map(scope_of_levels).collect();
        prop_assert_eq!(verified.scopes(), &expected);
        assert_never_grows(verified.scopes())?;
    }

    #[test]
    fn r_4_no_hop_widens_a_dimension_that_any_hop_before_it_bounds(
        (root, hops) in levels(),
        n in 0usize..6,
        swaps_unit in any::<bool>(),
    ) {
        let (chain, levels) = chain_of_levels(root, &hops);
        let now = levels[levels.len() - 1];
        let Some(level) = now[n] else { return Ok(()) };
        let mut wider = widened(&chain, now, n, level);
        if DIMENSIONS[n] == Dimension::Budget && swaps_unit {
            wider = delegate(&chain, |members| {
                let scope = &mut members["delegated_scope"];
                declare(scope, Dimension::Capabilities, now[0].unwrap());
                declare(scope, Dimension::Budget, 0);
                scope["budget_unit"] = "tokens".into();
            });
        }
        let denial = verify(&wider).unwrap_err();
        prop_assert_eq!((denial.hop, denial.dimension), (Some(hops.len() + 1), Some(DIMENSIONS[n])));
    }
}
