//! `tenure test`: a project's tests, run among pretended machines.

mod common;

use common::Workbench;

#[test]
fn a_new_project_has_tests_that_pass_in_each_language() {
    let workbench = Workbench::new();
    for (name, language) in [("one", "rust"), ("two", "c")] {
        workbench.tenure_ok(&["new", name, "--lang", language]);
        let report = workbench.tenure_ok(&["test", name]);
        assert!(report.contains("4 of 4 tests passed"), "{report}");
        assert!(report.contains("ok      a machine on this device is greeted by its name"));
    }
}

#[test]
fn a_test_that_fails_says_what_was_expected_and_what_came() {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", "c"]);
    workbench.write(&[(
        "greeter/tests.toml",
        "grant = [\"none\"]\n\
         [[machine]]\nname = \"friend\"\n\
         [[test]]\nname = \"wrong\"\ncall = \"greet\"\nexpect = \"Bye\"\n\
         [[test]]\nname = \"denied\"\ncaller = \"friend\"\ncall = \"greet\"\nerror = \"denied\"\n",
    )]);
    let output = workbench.tenure(&["test", "greeter"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FAILED  wrong"), "{text}");
    assert!(text.contains("expected the result \"Bye\""), "{text}");
    assert!(text.contains("there was the result \"Hello, world!"), "{text}");
    assert!(text.contains("ok      denied") && text.contains("1 of 2 tests passed"), "{text}");
    let json = workbench.tenure_ok(&["test", "greeter", "--json", "--filter", "denied"]);
    assert_eq!(json.lines().next(), Some("{\"passed\":true,\"test\":\"denied\"}"));
}

#[test]
fn a_test_that_fails_shows_what_the_machine_logged_and_the_line_of_its_fault() {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", "c"]);
    workbench.write(&[
        (
            "greeter/src/main.c",
            "#include <tenure.h>\n\
             TENURE_EXPORT(entry) { tenure_info(\"hello\"); }\n\
             TENURE_EXPORT(well) { tenure_reply_text(\"yes\"); }\n\
             TENURE_EXPORT(ill) {\n\
             \x20   tenure_warning(\"about to fail\");\n\
             \x20   __builtin_trap();\n\
             }\n",
        ),
        (
            "greeter/tests.toml",
            "[[test]]\nname = \"well\"\ncall = \"well\"\nexpect = \"yes\"\n\
             [[test]]\nname = \"ill\"\ncall = \"ill\"\nexpect = \"yes\"\n",
        ),
    ]);
    let output = workbench.tenure(&["test", "greeter"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, failed) = text.split_once("FAILED  ill").unwrap();
    assert!(failed.contains("warning about to fail\n") && failed.contains("main.c:6"), "{text}");
    assert!(!text.contains("hello"), "{text}");
    let output = workbench.tenure(&["test", "greeter", "--json", "--filter", "ill"]);
    let json = String::from_utf8(output.stdout).unwrap();
    let failed: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let log = failed["log"].as_array().unwrap();
    assert!(log.iter().any(|line| line["message"] == "hello"), "{failed}");
    assert!(log.iter().any(|line| line["level"] == "warning"), "{failed}");
    assert_eq!(log.last().unwrap()["place"]["lines"][0]["line"], 6, "{failed}");
}

#[test]
fn mistakes_in_a_test_file_are_named() {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", "c"]);
    for (text, words) in [
        ("[[test]]\nname = \"t\"\ncall = \"greet\"\n", "needs one of expect, contains and error"),
        ("[[test]]\nnam = \"t\"\n", "unknown field `nam`"),
        (
            "[[test]]\nname = \"t\"\nafter = \"soon\"\ncall = \"greet\"\nexpect = \"\"\n",
            "`after` is a time up to 1h",
        ),
        (
            "[[test]]\nname = \"t\"\ncall = \"greet\"\ncaller = \"x\"\nexpect = \"\"\n",
            "the caller `x` is none of the machines",
        ),
        (
            "grant = [\"calls=*\"]\n[[test]]\nname = \"t\"\ncall = \"greet\"\nexpect = \"\"\n",
            "goes beyond what the package asks for",
        ),
    ] {
        workbench.write(&[("greeter/tests.toml", text)]);
        let output = workbench.tenure(&["test", "greeter"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(words), "{words}: {error}");
    }
}

/// Asks for a body in parts, and tells how long it was and what a field says.
const C_VISITOR: &str = r#"
#include <tenure.h>

TENURE_EXPORT(fetch) {
    const char *url = "https://api.example.com/v1/long";
    struct tenure_http_response answer = tenure_http_request("GET", url, "accept: text/plain\r\n", NULL, 0);
    if (answer.error != 0) {
        char why[128];
        tenure_failure_text(why, sizeof why);
        tenure_reply_text(why);
        return;
    }
    size_t length = answer.length, etag_length;
    const char *etag = tenure_http_field(&answer, "ETag", &etag_length);
    bool more = answer.more;
    char text[64];
    int status = answer.status;
    snprintf(text, sizeof text, "%d %.*s", status, (int)etag_length, etag == NULL ? "" : etag);
    free(answer.block);
    while (more) {
        struct tenure_result part = tenure_http_more(url);
        more = part.value != NULL;
        length += part.length;
        free(part.value);
    }
    char told[96];
    snprintf(told, sizeof told, "%s %u", text, (unsigned)length);
    tenure_reply_text(told);
}

TENURE_EXPORT(send) {
    struct tenure_http_response answer =
        tenure_http_request("POST", "https://api.example.com/v1/readings", NULL, "21.5", 4);
    tenure_reply_text(answer.status == 201 && !answer.more && answer.length == 0 ? "sent" : "not sent");
    free(answer.block);
}
"#;

#[test]
fn c_machine_asks_pretended_servers_by_helpers_of_the_language() {
    let workbench = Workbench::new();
    let description = "name = \"visitor\"\nversion = \"1.0.0\"\nlanguage = \"c\"\n\
         [budget]\nmemory_bytes = 131072\n\
         [capabilities]\nreach = [\"https://api.example.com/v1/*\"]\n";
    let long = "x".repeat(10_000);
    let tests = |servers: &str, expected: &str| {
        format!(
            "{servers}\n[[test]]\nname = \"parts\"\ncall = \"fetch\"\nexpect = \"{expected}\"\n"
        )
    };
    let servers = format!(
        "[[server]]\nurl = \"https://api.example.com\"\n[server.answers]\n\
         \"GET /v1/long\" = {{ fields = {{ etag = \"a\" }}, body = \"{long}\" }}\n\
         \"POST /v1/readings\" = {{ status = 201 }}\n"
    );
    let sends = "[[test]]\nname = \"sends\"\ncall = \"send\"\nexpect = \"sent\"\n";
    workbench.write(&[
        ("m/tenure.toml", description),
        ("m/src/main.c", C_VISITOR),
        ("m/tests.toml", &(tests(&servers, "200 a 10000") + sends)),
    ]);
    assert!(workbench.tenure_ok(&["test", "m"]).contains("2 of 2 tests passed"));
    let none = tests("", "tests.toml pretends no server https://api.example.com");
    workbench.write(&[("m/tests.toml", &none)]);
    assert!(workbench.tenure_ok(&["test", "m"]).contains("1 of 1 test passed"));
}
