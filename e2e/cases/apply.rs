//! Server-side and client-side apply.

use e2e::Case;

pub(crate) fn neither_way_to_apply_drifts_after_completion() {
    let mut case = Case::new("apply");
    case.table("client", 5);
    case.table("server", 5);
    let (client, server) = (case.document("client"), case.document("server"));
    let namespace = case.namespace.clone();
    let on_the_server = ["apply", "--server-side", "--field-manager=people", "-n", &namespace, "-f", "-"];
    case.apply(&client);
    case.kubectl().feed(&on_the_server, &server);
    for (name, document, options) in
        [("client", &client, &[][..]), ("server", &server, &["--server-side", "--field-manager=people"][..])]
    {
        let done = case.until_phase(name, "Succeeded");
        let diff: Vec<&str> =
            ["diff"].into_iter().chain(options.iter().copied()).chain(["-n", &namespace, "-f", "-"]).collect();
        let answer = case.kubectl().try_run(&diff, document);
        assert!(answer.success, "{name} drifts: {}{}", answer.out, answer.err);
        let again: Vec<&str> =
            ["apply"].into_iter().chain(options.iter().copied()).chain(["-n", &namespace, "-f", "-"]).collect();
        case.kubectl().feed(&again, document);
        assert_eq!(case.get(name)["metadata"]["generation"], done["metadata"]["generation"], "{name}");
    }
    assert_eq!(case.receipts(), "2");
}
