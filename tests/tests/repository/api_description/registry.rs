//! The description of the registry server's two listeners.

use black_box::RegistryProcess;
use black_box::cli::Folder;
use serde_json::{Value, json};

use super::clients::{Description, must_be_problem, text};

#[test]
fn the_description_of_a_registry_server_is_checked_in_and_clients_of_it_read_the_registry() {
    let folder = Folder::new();
    let server = RegistryProcess::of_a_new_registry(&folder);
    let description = Description::served_by(server.connection());
    description.must_be_served_by(server.admin());
    description.must_be_checked_in_as("registry.json");
    assert_eq!(description.paths(), ["/deltas.json", "/livez", "/metrics", "/readyz", "/registry.json"]);

    let base_url = format!("http://{}", server.connection().address());
    let admin = format!("http://{}", server.admin().address());
    let call = |operation: &str, base_url: &str| json!({ "operation": operation, "base_url": base_url });
    let calls = json!([
        call("registry.registry", &base_url),
        call("registry.deltas", &base_url),
        call("admin.readyz", &admin),
    ]);
    folder.write("deltas.json", "{}");
    let answers = description.call_from_python(&calls);
    let [registry, refused, unready] = &answers[..] else { panic!("{answers:?}") };
    let signed: Value =
        serde_json::from_slice(&std::fs::read(folder.path("registry.json")).unwrap()).unwrap();
    assert_eq!(registry["parsed"], signed, "{registry}");
    must_be_problem(refused, 503, "registry-unusable");
    assert_eq!(unready["status"], 503, "{unready}");
    assert!(text(unready).starts_with("the file of deltas"), "{unready}");

    folder.write("deltas.json", "[]");
    let answers = description.call_from_typescript("registry_client.mts", &[&base_url, &admin]);
    let expected = json!({ "status": 200, "again": 304, "deltas": [], "ready": "ready\n" });
    assert_eq!(answers, expected);
    server.stop();
}
