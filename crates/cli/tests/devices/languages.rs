//! The same machine in each language, on one device with a thermometer.

use serde_json::Value;
use tenure_testbed::skip_without_tool;

use crate::boards::{RISCV32, device_at};
use crate::component::{LATER, component, later_program};
use crate::guests::weather;
use crate::harness::{Process, User, any_address, free_ipv4_address, on};

const PERIPHERALS: &str =
    "[temperature]\nkind = \"thermometer\"\nperiod_ms = 20\npoints = [[0.0, 19.5]]\n";

#[test]
fn machines_of_all_languages_hear_the_same_sensor_and_say_the_same_of_it() {
    let user = User::new();
    std::fs::write(user.path("peripherals.toml"), PERIPHERALS).unwrap();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--peripherals", "peripherals.toml"]);
    let device = Process::start(command);
    user.install(&device, &["thermostat"]);
    for language in ["rust", "c", "cpp", "zig", "assemblyscript", "javascript", "lua"] {
        if !is_there(&user, language) {
            skip_without_tool(language);
            continue;
        }
        let package = weather(language);
        let place = ["--as", language, "--grant", "all", "--device", &device.address];
        user.ok(&[&["install", &package], &place[..]].concat());
        user.call_until(&device, &[language, "report"], "19.5: colder than 21.0");
    }
}

#[test]
fn machines_of_languages_that_fit_live_side_by_side_on_an_emulated_board() {
    let user = User::new();
    let address = free_ipv4_address();
    let device = device_at(RISCV32, &user, "attic", &address);
    user.install(&device, &["thermostat"]);
    let languages = ["rust", "c", "zig", "assemblyscript", "javascript"];
    let there: Vec<_> =
        languages.into_iter().filter(|language| is_there(&user, language)).collect();
    languages.iter().filter(|it| !there.contains(it)).for_each(|it| skip_without_tool(it));
    for language in &there {
        let place = ["--as", *language, "--grant", "all", "--device", &device.address];
        user.ok(&[&["install", &weather(language)], &place[..]].concat());
    }
    let reports = |language: &str| {
        assert_eq!(user.call(on(&device), &[language, "report"]), "no reading yet");
        // The board has no thermometer.
        user.ok(&["tree", "set", language, "history", "22.5", "--device", &device.address]);
        user.call_until(&device, &[language, "report"], "22.5: warmer than 21.0");
    };
    there.iter().for_each(|language| reports(language));
    if !is_there(&user, "lua") {
        return skip_without_tool("lua");
    }
    // Lua takes what several of the others take, and comes in their place.
    for language in there {
        user.ok(&["remove", language, "--device", &device.address]);
    }
    let place = ["--as", "lua", "--grant", "all", "--device", &device.address];
    user.ok(&[&["install", &weather("lua")], &place[..]].concat());
    reports("lua");
}

#[test]
fn component_of_wasi_0_3_waits_reads_and_writes_on_an_emulated_board() {
    let user = User::new();
    let address = free_ipv4_address();
    let device = device_at(RISCV32, &user, "attic", &address);
    std::fs::create_dir(user.path("later")).unwrap();
    let description = "name = \"later\"\nversion = \"1.0.0\"\nmodule = \"later.wasm\"\n\
                       [budget]\nmemory_bytes = 81920\nstored_bytes = 4096\n\
                       [wasi]\nstart = false\nparameter = \"input\"\noutput = \"result\"\n";
    std::fs::write(user.path("later/tenure.toml"), description).unwrap();
    std::fs::write(user.path("later/later.wasm"), component(LATER, &later_program())).unwrap();
    user.ok(&["build", "later"]);
    let place = ["--grant", "all", "--device", &device.address];
    user.ok(&[&["install", "later/later.tenure"], &place[..]].concat());
    for _ in 0..2 {
        assert_eq!(user.call(on(&device), &["later", "run", ", all"]), "first and then, all");
    }
}

#[test]
fn what_the_same_machine_takes_stays_within_what_its_language_needs() {
    let user = User::new();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill"]);
    let device = Process::start(command);
    println!(
        "| language | package | code | image in flash | memory | fuel a call |\n|---|--:|--:|--:|--:|--:|"
    );
    for (language, memory_most, fuel_most) in [
        ("c", 8 * 1024, 50_000),
        ("zig", 8 * 1024, 50_000),
        ("rust", 8 * 1024, 50_000),
        ("assemblyscript", 16 * 1024, 90_000),
        ("cpp", 16 * 1024, 60_000),
        ("javascript", 32 * 1024, 120_000),
        ("lua", 48 * 1024, 150_000),
    ] {
        if !is_there(&user, language) {
            skip_without_tool(language);
            continue;
        }
        user.ok(&["new", language, "--lang", language]);
        user.ok(&["build", language]);
        let package = format!("{language}/{language}.tenure");
        let bytes = std::fs::metadata(user.path(&package)).unwrap().len();
        let inspected = user.json(&["inspect", &package]);
        user.ok(&["install", &package, "--grant", "all", "--device", &device.address]);
        let greet = || user.call(on(&device), &[language, "greet", "Ada"]);
        let fuel = || listed(&user, &device, language)["fuel_used"].as_u64().unwrap();
        (0..10).for_each(|_| drop(greet()));
        let before = fuel();
        (0..10).for_each(|_| drop(greet()));
        let a_call = (fuel() - before) / 10;
        assert_eq!(greet(), "Hello, Ada! You are number 21.");
        let memory = listed(&user, &device, language)["memory_bytes"].as_u64().unwrap();
        let (code, image) = (&inspected["code_bytes"], &inspected["image_bytes"]);
        println!("| {language} | {bytes} | {code} | {image} | {memory} | {a_call} |");
        assert!(memory <= memory_most && a_call <= fuel_most, "{language}: {memory}, {a_call}");
    }
}

/// A module of 5,001 functions and more than a mebibyte, of which `run` calls the last and replies.
fn large_module() -> Vec<u8> {
    use wasm_encoder::{
        CodeSection, DataSection, EntityType, ExportKind, ExportSection, Function, FunctionSection,
        ImportSection, Instruction, MemorySection, MemoryType, Module, TypeSection, ValType,
    };
    const FUNCTIONS: u32 = 5_000;
    // At 0 the host takes it for no result.
    const REPLY_AT: i32 = 16;
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([ValType::I32], [ValType::I32]);
    types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
    let mut imports = ImportSection::new();
    imports.import("tenure", "reply", EntityType::Function(2));
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    functions.function(0);
    let mut run = Function::new([]);
    for instruction in [
        Instruction::I32Const(0),
        Instruction::Call(FUNCTIONS + 1),
        Instruction::Drop,
        Instruction::I32Const(REPLY_AT),
        Instruction::I32Const(4),
        Instruction::Call(0),
        Instruction::Drop,
        Instruction::End,
    ] {
        run.instruction(&instruction);
    }
    code.function(&run);
    for number in 0..FUNCTIONS {
        functions.function(1);
        let mut function = Function::new([]);
        for step in 0..26 {
            function.instruction(&Instruction::LocalGet(0));
            function.instruction(&Instruction::I32Const((number * 26 + step) as i32 + 100_000));
            function.instruction(&Instruction::I32Xor);
            function.instruction(&Instruction::LocalSet(0));
        }
        function.instruction(&Instruction::LocalGet(0)).instruction(&Instruction::End);
        code.function(&function);
    }
    let mut memories = MemorySection::new();
    let page = MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    };
    memories.memory(page);
    let mut exports = ExportSection::new();
    exports.export("run", ExportKind::Func, 1);
    let mut data = DataSection::new();
    data.active(0, &wasm_encoder::ConstExpr::i32_const(REPLY_AT), *b"here");
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&memories);
    module.section(&exports).section(&code).section(&data);
    module.finish()
}

#[test]
fn module_that_is_too_large_for_boards_runs_on_a_device_with_megabytes() {
    let user = User::new();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill"]);
    let device = Process::start(command);
    std::fs::create_dir(user.path("large")).unwrap();
    let description = "name = \"large\"\nversion = \"1.0.0\"\nmodule = \"large.wasm\"\n\
                       [budget]\nmemory_bytes = 65536\n";
    std::fs::write(user.path("large/tenure.toml"), description).unwrap();
    let module = large_module();
    assert!(module.len() > 1 << 20, "{}", module.len());
    std::fs::write(user.path("large/large.wasm"), module).unwrap();
    let built = user.json(&["build", "large"]);
    let refusal = built["boards_refuse"].as_str().unwrap();
    assert!(refusal.contains(", and a board takes 1,048,576; leave out"), "{refusal}");
    let package = "large/large.tenure";
    user.ok(&["install", package, "--grant", "all", "--device", &device.address]);
    assert_eq!(user.call(on(&device), &["large", "run"]), "here");
}

fn is_there(user: &User, language: &str) -> bool {
    let listed = user.ok(&["toolchain", "list", "--json"]);
    let mut lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.any(|line| line["language"] == language && line["is_there"] == true)
}

fn listed(user: &User, device: &Process, name: &str) -> Value {
    let list = user.json(&["list", "--device", &device.address]);
    let machines = list["machines"].as_array().unwrap();
    machines.iter().find(|machine| machine["name"] == name).unwrap().clone()
}
