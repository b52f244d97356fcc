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
