//! The files of `deploy`: their programs read them, and the flags, variables, ports and the image that they name exist.
//!
//! `devices::operations` runs what can be run of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ArgMatches;
use serde_json::Value;
use tenure_testbed::{Packages, find_server, skip_without_part, skip_without_tool};
use tenure_wire::{PublicKey, VerifyingKey};

/// The most that `systemd-analyze security` may find open of a unit, in tenths of its ten.
const EXPOSURE_MAX: &str = "15";
/// The command as files call it that run on a computer or in a container.
const PROGRAM: &str = "/usr/local/bin/tenure";

/// The values of variables by their names.
type Variables = BTreeMap<String, String>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The image that the files name.
fn image() -> String {
    format!("localhost/tenure-hub:{}", env!("CARGO_PKG_VERSION"))
}

/// The variables in a file, with keys in the place of the word KEYS.
fn variables_in(name: &str) -> Variables {
    let text = read(name);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}")));
    pairs.map(|(name, value)| (name.into(), filled_in(value))).collect()
}

fn filled_in(value: &str) -> String {
    match value {
        "KEYS" => format!("{}/{}", VerifyingKey([7; 32]), PublicKey([9; 32])),
        value => value.to_string(),
    }
}

/// `text` with the values of the variables that stand in it between `open` and `close`.
fn expanded(text: &str, open: &str, close: char, values: &Variables) -> String {
    let mut parts = text.split(open);
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once(close).unwrap_or_else(|| panic!("{text}"));
        let name = without_complaint(name);
        let value = values.get(name).unwrap_or_else(|| panic!("nobody sets {name}: {text}"));
        whole += value;
        whole += rest;
    }
    whole
}

/// The variables whose names stand in `text` between `open` and `close`.
fn named<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    let parts = text.split(open).skip(1);
    parts.filter_map(|part| Some(without_complaint(part.split_once(close)?.0))).collect()
}

/// A name without the words that Compose complains with if nobody sets it: `NAME:?words`.
fn without_complaint(name: &str) -> &str {
    name.split_once(":?").map_or(name, |(name, _)| name)
}

/// What the command line makes of these words, the command first, of a process with these variables.
#[track_caller]
fn taken(words: &[String], variables: &Variables) -> ArgMatches {
    assert_eq!(words[0], PROGRAM);
    let mut words = words.to_vec();
    words[0] = "tenure".into();
    let command = tenure_cli::command_line::command();
    if words.get(1).is_some_and(|word| word == "hub")
        && words.get(2).is_some_and(|word| word.starts_with('-'))
    {
        // As options: the variables of this process are its own.
        for (option, name) in variables_of_a_hub() {
            words.extend(variables.get(&name).map(|value| format!("--{option}={value}")));
        }
    }
    let taken = command.try_get_matches_from(&words);
    taken.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")))
}

/// The options of a hub that a variable may stand for, each with the name of the variable.
fn variables_of_a_hub() -> Vec<(String, String)> {
    let command = tenure_cli::command_line::command();
    let hub = command.find_subcommand("hub").expect("`tenure hub`");
    let pair = |argument: &clap::Arg| {
        let name = argument.get_env().and_then(OsStr::to_str)?;
        Some((argument.get_long()?.to_string(), name.to_string()))
    };
    hub.get_arguments().filter_map(pair).collect()
}

/// Each of these variables is one that a hub reads, or stands in `text` between `open` and `close`.
#[track_caller]
fn assert_used(variables: &Variables, text: &str, open: &str, close: char) {
    let used = named(text, open, close);
    let read: Vec<String> = variables_of_a_hub().into_iter().map(|(_, name)| name).collect();
    for name in variables.keys() {
        let is_used = used.contains(&name.as_str()) || read.contains(name);
        assert!(is_used, "nothing uses {name}");
    }
}

/// The variables that a unit sets itself.
fn variables_of(unit: &str) -> Variables {
    let set = unit.lines().filter_map(|line| line.strip_prefix("Environment="));
    set.filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// The ports of a hub: for devices, and for pages.
fn ports(matches: &ArgMatches) -> (u16, u16) {
    let hub = matches.subcommand_matches("hub").expect("a hub");
    let listen: &String = hub.get_one("listen").expect("a default");
    let pages: &SocketAddr = hub.get_one("pages").expect("--pages");
    (listen.parse::<SocketAddr>().expect("an address").port(), pages.port())
}

/// The processes that a unit starts, as `tenure-hub@1.service` if it is a template.
fn processes_of(unit: &str) -> Vec<Vec<String>> {
    let lines = unit.lines().filter(|line| line.starts_with("Exec"));
    let words = lines.map(|line| {
        let (_, words) = line.split_once('=').expect("a directive");
        let words = words.replace("%%", "%").replace("%i", "1");
        let words = shlex::split(&words).unwrap_or_else(|| panic!("{line}"));
        match words.iter().position(|word| word == "-c") {
            Some(at) => shlex::split(words[at + 1].trim_start_matches("exec ")).expect("a script"),
            None => words,
        }
    });
    words.collect()
}

fn units() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join("systemd")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "service" || kind == "timer"));
    paths.sort();
    paths
}

#[test]
fn units_start_commands_that_exist() {
    let variables = variables_in("systemd/hub.env");
    let mut all = String::new();
    let mut seen = BTreeMap::new();
    for path in units() {
        let unit = std::fs::read_to_string(&path).unwrap();
        let mut values = variables.clone();
        values.extend(variables_of(&unit));
        for words in processes_of(&unit).iter().filter(|words| words[0] == PROGRAM) {
            let expand = |word: &String| expanded(word, "${", '}', &values);
            let words: Vec<String> = words.iter().map(expand).collect();
            let matches = taken(&words, &variables);
            if words[2].starts_with('-') {
                seen.insert(path.file_name().unwrap().to_owned(), ports(&matches));
                // Without the second one systemd gives a hub up whose database is away for five seconds.
                for line in ["EnvironmentFile=/etc/tenure/hub.env", "StartLimitIntervalSec=0"] {
                    assert!(unit.lines().any(|other| other == line), "{line}: {unit}");
                }
            }
        }
        all += &unit;
    }
    assert_used(&variables, &all, "${", '}');
    let of = |unit: &str| seen[OsStr::new(unit)];
    assert_eq!((of("tenure-hub.service"), of("tenure-hub@.service")), ((7369, 7380), (7361, 7381)));
    // The proxies go to the processes that the template makes.
    for proxy in ["nginx/tenure-hub.conf", "caddy/Caddyfile"] {
        let text = read(proxy);
        for port in 7381..=7383 {
            assert!(text.contains(&format!("127.0.0.1:{port}")), "{proxy}: {port}");
        }
    }
}

#[test]
fn units_are_understood_and_closed_by_systemd() {
    if find_server("systemd-analyze").is_none() {
        return skip_without_part("systemd");
    }
    let copies = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for path in units() {
        let name = path.file_name().unwrap().to_str().unwrap().replace('@', "@1");
        let unit = std::fs::read_to_string(&path).unwrap();
        // It looks whether the program is there.
        let unit = unit.replace(PROGRAM, env!("CARGO_BIN_EXE_tenure"));
        std::fs::write(copies.path().join(&name), unit).unwrap();
        names.push(name);
    }
    let analyze = |words: &[&str], names: &[&String]| {
        let mut command = Command::new("systemd-analyze");
        command.args(words).args(names.iter().map(|name| format!("./{name}")));
        let output = command.current_dir(copies.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        (output.status.success(), said)
    };
    let (is_understood, said) = analyze(&["verify"], &names.iter().collect::<Vec<_>>());
    assert!(is_understood && said.is_empty(), "{said}");
    for name in names.iter().filter(|name| name.ends_with(".service")) {
        let (is_closed, said) =
            analyze(&["security", "--offline=true", "--threshold", EXPOSURE_MAX], &[name]);
        assert!(is_closed, "{said}");
    }
}

#[test]
fn caddy_understands_its_file() {
    let Some(caddy) = find_server("caddy") else { return skip_without_tool("caddy") };
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(caddy);
    command.args(["validate", "--adapter", "caddyfile", "--config"]);
    command.arg(folder().join("caddy/Caddyfile")).env("HOME", home.path());
    let output = command.env("XDG_DATA_HOME", home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("not formatted"), "caddy fmt: {said}");
}

/// The texts in a list.
fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|text| text.as_str().unwrap_or_else(|| panic!("{text}")).into()).collect()
}

#[test]
fn compose_file_starts_hubs_that_exist_behind_a_proxy_that_finds_them() {
    let text = read("compose/compose.yaml");
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let given = variables_in("compose/.env.example");
    let expand = |text: &str| expanded(text, "${", '}', &given);
    for name in given.keys() {
        assert!(named(&text, "${", '}').contains(&name.as_str()), "nothing uses {name}");
    }
    let services = compose["services"].as_object().unwrap();
    let mut hubs = Vec::new();
    let mut published = Vec::new();
    for (name, service) in services.iter().filter(|(_, service)| service["image"] == image()) {
        let environment = service["environment"].as_object().unwrap();
        let pair =
            |(name, value): (&String, &Value)| (name.clone(), expand(value.as_str().unwrap()));
        let environment: Variables = environment.iter().map(pair).collect();
        assert_used(&environment, "", "${", '}');
        let mut words = vec![PROGRAM.to_string(), "hub".to_string()];
        words.extend(texts(&service["command"]).iter().map(|word| expand(word)));
        let (devices, pages) = ports(&taken(&words, &environment));
        let ports = texts(&service["ports"]);
        assert!(ports.iter().all(|port| port.ends_with(&format!(":{devices}/udp"))), "{ports:?}");
        published.extend(ports);
        let asked = texts(&service["healthcheck"]["test"]);
        assert_eq!(asked[0], "CMD");
        let asked = taken(&asked[1..], &Variables::new());
        let asked =
            asked.subcommand_matches("hub").and_then(|hub| hub.subcommand_matches("health"));
        let asked: &SocketAddr = asked.unwrap().get_one("pages").unwrap();
        assert_eq!(asked.port(), pages);
        hubs.push(format!("{name}:{pages}"));
    }
    published.sort();
    published.dedup();
    assert_eq!((hubs.len(), published.len()), (2, 2), "{hubs:?} {published:?}");
    assert_eq!(services["proxy"]["environment"]["TENURE_HUBS"], hubs.join(" "));
    // The proxy's own file, with the variables that it reads.
    let file = texts(&services["proxy"]["volumes"])[0].clone();
    let (file, _) = file.split_once(':').unwrap();
    let caddyfile = std::fs::read_to_string(folder().join("compose").join(file)).unwrap();
    let environment = services["proxy"]["environment"].as_object().unwrap();
    for name in environment.keys() {
        assert!(caddyfile.contains(&format!("{{${name}:")), "{name}");
    }
}

#[test]
fn compose_file_is_understood_by_docker() {
    let has_compose = Command::new("docker").args(["compose", "version"]).output();
    if !has_compose.is_ok_and(|output| output.status.success()) {
        return skip_without_part("docker compose");
    }
    let mut command = Command::new("docker");
    command.args(["compose", "--env-file", ".env.example", "config", "--quiet"]);
    let output = command.current_dir(folder().join("compose")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The objects of the manifests, by kind and name.
fn objects() -> BTreeMap<(String, String), Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(&read("kubernetes/hub.yaml")).unwrap();
    let pair = |object: Value| {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{object}")).to_string();
        ((text(&object["kind"]), text(&object["metadata"]["name"])), object.clone())
    };
    objects.into_iter().map(pair).collect()
}

/// Whether an object with these labels is one of those that `selector` means.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().unwrap();
    !selector.is_empty() && selector.iter().all(|(name, value)| &labels[name] == value)
}

#[test]
fn manifests_start_hubs_that_exist_and_name_each_other() {
    let objects = objects();
    let object = |kind: &str, name: &str| {
        let key = (kind.to_string(), name.to_string());
        objects.get(&key).unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let hubs = &object("StatefulSet", "tenure-hub")["spec"];
    let pod = &hubs["template"]["spec"];
    let hub = &pod["containers"][0];
    assert_eq!(hub["image"], image());
    assert_eq!(hub["envFrom"][0]["configMapRef"]["name"], "tenure-hub");
    let map = object("ConfigMap", "tenure-hub")["data"].as_object().unwrap();
    let pair =
        |(name, value): (&String, &Value)| (name.clone(), filled_in(value.as_str().unwrap()));
    let mut variables: Variables = map.iter().map(pair).collect();
    let arguments = texts(&hub["args"]);
    assert_used(&variables, &arguments.join(" "), "$(", ')');
    // The secret is made by the command at the top of the file.
    let secret = hub["envFrom"][1]["secretRef"]["name"].as_str().unwrap();
    let made = format!("create secret generic {secret} --from-literal=TENURE_DATABASE=postgres://");
    assert!(read("kubernetes/hub.yaml").contains(&made), "{made}");
    variables.insert("TENURE_DATABASE".into(), "postgres://tenure@database/tenure".into());

    let mut words = vec![PROGRAM.to_string(), "hub".to_string()];
    words.extend(arguments.iter().map(|word| expanded(word, "$(", ')', &variables)));
    let (devices, pages) = ports(&taken(&words, &variables));
    let list = hub["ports"].as_array().unwrap();
    let of = |port: &Value| {
        (port["name"].clone(), port["protocol"].clone(), port["containerPort"].clone())
    };
    let list: Vec<_> = list.iter().map(of).collect();
    let expected = [("devices", "UDP", devices), ("pages", "TCP", pages)];
    assert_eq!(list, expected.map(|(name, by, port)| (name.into(), by.into(), port.into())));
    for (probe, path) in [("livenessProbe", "/health"), ("readinessProbe", "/ready")] {
        let asked = &hub[probe]["httpGet"];
        assert_eq!((&asked["path"], &asked["port"]), (&path.into(), &"pages".into()), "{probe}");
    }

    let labels = &hubs["template"]["metadata"]["labels"];
    let replicas = hubs["replicas"].as_u64().unwrap();
    assert!(selects(&hubs["selector"]["matchLabels"], labels));
    assert!(selects(
        &object("PodDisruptionBudget", "tenure-hub")["spec"]["selector"]["matchLabels"],
        labels
    ));
    assert!(selects(&object("Service", "tenure-hub")["spec"]["selector"], labels));
    assert_eq!(object("Service", "tenure-hub")["spec"]["ports"][0]["targetPort"], "pages");
    for number in 0..replicas {
        let name = format!("tenure-hub-{number}");
        let spec = &object("Service", &name)["spec"];
        // What the cluster itself puts on each pod of the set.
        let mut labels = labels.clone();
        labels["statefulset.kubernetes.io/pod-name"] = name.as_str().into();
        assert!(selects(&spec["selector"], &labels), "{name}");
        assert_eq!(spec["ports"][0]["targetPort"], "devices", "{name}");
        assert_eq!(spec["externalTrafficPolicy"], "Local", "{name}");
    }
    let back = &object("Ingress", "tenure-hub")["spec"]["rules"][0]["http"]["paths"][0]["backend"];
    let name = back["service"]["name"].as_str().unwrap();
    assert_eq!(
        back["service"]["port"]["name"],
        object("Service", name)["spec"]["ports"][0]["name"]
    );
    for ((_, name), object) in objects.iter().filter(|((kind, _), _)| kind != "Namespace") {
        assert_eq!(object["metadata"]["namespace"], "tenure", "{name}");
    }
}

#[test]
fn manifests_are_as_the_schemas_of_kubernetes_have_them() {
    let among = env!("CARGO_TARGET_TMPDIR");
    let Some(folder_of_it) = Packages::KubernetesValidate.of_test(among) else { return };
    let validator = Packages::python(&folder_of_it);
    let validate = |file: &Path| {
        let mut command = Command::new("python3");
        command.args(["-m", "kubernetes_validate", "--strict", "--quiet"]).arg(file);
        let output = command.env("PYTHONPATH", &validator).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    };
    let file = folder().join("kubernetes/hub.yaml");
    let (is_valid, said) = validate(&file);
    assert!(is_valid, "{said}");
    let wrong = tempfile::NamedTempFile::new().unwrap();
    let text = std::fs::read_to_string(&file).unwrap().replace("containerPort:", "containerPrt:");
    std::fs::write(wrong.path(), text).unwrap();
    assert!(!validate(wrong.path()).0, "it looks");
}
