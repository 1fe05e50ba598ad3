//! The description of the monitor's listener.

use black_box::cli::Folder;
use black_box::{LyingLog, MonitorProcess};
use serde_json::json;

use super::clients::{Description, text};

#[test]
fn the_description_of_a_monitor_is_checked_in_and_clients_of_it_read_its_health_and_metrics() {
    let (log, folder) = (LyingLog::of(3), Folder::new());
    let (url, vkey) = (log.url(), log.vkey());
    let watched = format!("[[log]]\nname = \"theirs\"\nurl = \"{url}\"\nvkey = \"{vkey}\"\n");
    let settings = "state_dir = \"state\"\nevery = \"1s\"\nlisten = \"127.0.0.1:0\"\n";
    folder.write("monitor.toml", format!("{settings}{watched}"));
    let mut monitor = MonitorProcess::start(&folder);
    monitor.next("round");
    let description = Description::served_by(monitor.admin());
    description.must_be_checked_in_as("monitor.json");
    assert_eq!(description.paths(), ["/livez", "/metrics"]);

    let base_url = format!("http://{}", monitor.admin().address());
    let call = |operation: &str| json!({ "operation": operation, "base_url": base_url });
    let answers = description.call_from_python(&json!([call("admin.livez"), call("admin.metrics")]));
    assert_eq!(text(&answers[0]), "alive\n");
    assert!(text(&answers[1]).contains("tabellion_monitor_rounds_total"), "{}", answers[1]);
    let answers = description.call_from_typescript("monitor_client.mts", &[&base_url]);
    assert_eq!(answers["alive"], "alive\n");
    assert!(answers["metrics"].as_str().unwrap().contains("tabellion_monitor_rounds_total"), "{answers}");
    assert_eq!(monitor.stop(), Some(0));
}
