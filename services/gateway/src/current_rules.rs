//! The rules of all routes that are in force now.

use std::collections::HashMap;
use std::sync::Arc;

use admission::rules::Rules;
use arc_swap::ArcSwap;

use crate::config::Config;

/// The current rules of each route, by path. The decision writer reads them.
pub type CurrentRules = Arc<ArcSwap<HashMap<String, Arc<Rules>>>>;

/// The rules of all routes, by path.
pub fn rules_of(config: &Config) -> HashMap<String, Arc<Rules>> {
    config.routes.iter().map(|route| (route.path.clone(), Arc::new(config.rules(route)))).collect()
}
