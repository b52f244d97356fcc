//! The 2020 Nihilo's API: the example programs of its documentation, and what it says of them.

mod common;

use common::Workbench;
use common::device::Device;

/// A program as it was written then, in C++ and with the header's name of then.
const PROGRAM: &str = r#"
#include "../include/api.h"

NIH_VOID(entry, param){
  queue(nullptr, "test", "hello!", "success", nullptr);
}
NIH_CHARS(test, param){
  logStr(param);
  return "response";
}
NIH_VOID(success, param){
  logStr(param);
}
NIH_CHARS(is_null, param){
  return param == nullptr ? "null" : "given";
}
NIH_CHARS(echo, param){
  return param;
}
NIH_VOID(copy, param){
  char* buf;
  mallocWasm((void**)&buf, 50);
  strcpy(buf, "test");
  logStr(buf);
}
NIH_VOID(save_value, param){
  writeString("A.B.C.Str", param);
}
NIH_VOID(save_above, param){
  writeString("A.B", param);
}
NIH_VOID(log_value, param){
  char* val;
  readString("A.B.C.Str", &val);
  if(val != nullptr)
    logStr(val);
}
NIH_VOID(count_peers, param){
  unsigned char* ids;
  logStr(decstr(knownPubs(&ids, 0, 1)));
  logStr(decstr(knownPubs(&ids, 1, 0)));
  logStr(decstr(knownPubs(&ids, 1, 1)));
  if(ids[0] == 1 && ids[31] == 1 && ids[32] == 2)
    logStr("keys of 32 bytes");
  logStr(decstr(knownPubs(&ids, 0, 0)));
}
NIH_VOID(log_uptime, param){
  logStr("uptime:");
  logStr(decstr((int)uptime()));
}
NIH_VOID(numbers, param){
  logStr(decstr(5));
  logStr(decstr(0));
  logStr(decstr(-2147483647 - 1));
  if(strdec(param) == 0)
    logStr("passed zero");
  else
    logStr("passed non-zero");
}
bool same(const char* a, const char* b){
  int i;
  for(i = 0; a[i] != 0 && b[i] != 0; i++)
    if (a[i] != b[i]) return false;
  if(a[i] != 0 || b[i] != 0) return false;
  return true;
}
NIH_VOID(hundred, param){
  for(int i = 0; i < 100; i++)
    writeString(decstr(i), "Hello, World");
  char* buf;
  for(int i = 0; i < 100; i++){
    readString(decstr(i), &buf);
    if(!same(buf, "Hello, World")){
      logStr("not same");
      break;
    }
  }
  logStr("finished");
}
NIH_VOID(queue_many, param){
  for(int i = 0; i < 100; i++){
    char* arg = (char*)(i==99?"end":"");
    queue(nullptr, "test", arg, nullptr, nullptr);
  }
}
"#;

/// Programs that take more of a queue, a tree or a string than fits.
const GREEDY: &str = r#"
#include <nihilo.h>
NIH_VOID(hundred, param){
  for(int i = 0; i < 100; i++)
    queue(nullptr, "test", decstr(i), nullptr, nullptr);
}
NIH_VOID(test, param){}
NIH_VOID(failed, param){}
NIH_VOID(away, param){
  queue(nullptr, "denied", "x", nullptr, "failed");
}
NIH_VOID(write, param){
  writeString("M.N", "s");
  writeString("M.N.C.Str", "x");
  writeString("M.O", "kept");
}
NIH_VOID(clear, param){
  writeString("", "x");
  writeString("a..b", "x");
  writeString("", nullptr);
}
NIH_CHARS(lengths, param){
  char *text, *back;
  mallocWasm((void **)&text, 4001);
  for(int i = 0; i < 4000; i++)
    text[i] = (char)('a' + i % 26);
  text[4000] = 0;
  writeString("long", text);
  readString("long", &back);
  bool same = back != nullptr && strcmp(text, back) == 0;
  writeString("long", "short");
  readString("long", &back);
  logStr(text);
  return same && strcmp(back, "short") == 0 ? "same" : "differs";
}
"#;

const PROJECT: &str = "name = \"nihilo\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n";

fn device() -> Device {
    let workbench = Workbench::new();
    workbench.write(&[("nihilo/tenure.toml", PROJECT), ("nihilo/src/root.cpp", PROGRAM)]);
    Device::with(&workbench.build("nihilo"), |world| {
        world.local_peers = vec![[1; 32]];
        world.remote_peers = vec![[2; 32], [3; 32]];
    })
}

#[test]
fn documented_programs_do_what_is_documented() {
    let mut device = device();

    // `queue` with a null target means this machine; a null callback is none.
    let queued = device.world().queued[0].clone();
    assert_eq!((queued.target.as_str(), queued.function.as_str()), ("", "test"));
    assert_eq!((queued.on_success.as_str(), queued.on_failure.as_str()), ("success", ""));
    assert_eq!(queued.parameter.as_deref(), Some(&b"hello!"[..]));
    assert_eq!(device.call("test", Some("hello!")), Ok(Some("response".into())));
    device.call("success", Some("response")).unwrap();
    assert_eq!(log(&mut device), ["hello!", "response"]);

    // A null parameter stays null, and so does a null result; an empty one is there.
    assert_eq!(device.call("is_null", None), Ok(Some("null".into())));
    assert_eq!(device.call("is_null", Some("")), Ok(Some("given".into())));
    assert_eq!(device.call("echo", None), Ok(None));
    assert_eq!(device.call("echo", Some("")), Ok(Some("".into())));

    device.call("copy", None).unwrap();
    assert_eq!(log(&mut device), ["test"]);

    // A path's objects are made as needed; a string takes the place of an object.
    device.call("log_value", None).unwrap();
    assert!(log(&mut device).is_empty());
    device.call("save_value", Some("value")).unwrap();
    device.call("log_value", None).unwrap();
    assert_eq!(log(&mut device), ["value"]);
    device.call("save_above", Some("string")).unwrap();
    device.call("log_value", None).unwrap();
    assert!(log(&mut device).is_empty());
    assert_eq!(device.world().tree["A.B"], b"string");
    device.call("save_above", None).unwrap();
    assert!(device.world().tree.is_empty());

    // Local and non-local machines are told apart.
    device.call("count_peers", None).unwrap();
    assert_eq!(log(&mut device), ["2", "1", "3", "keys of 32 bytes", "0"]);
    // The first once more, after it waited for the directory.
    assert_eq!(device.world().peers_asked, 4, "each costs a message");

    device.call("log_uptime", None).unwrap();
    assert_eq!(log(&mut device), ["uptime:", "1234567"]);
    device.call("numbers", Some("0")).unwrap();
    assert_eq!(log(&mut device), ["5", "0", "-2147483648", "passed zero"]);
    device.call("numbers", Some("-7x")).unwrap();
    assert_eq!(log(&mut device).last().unwrap(), "passed non-zero");
    device.call("hundred", None).unwrap();
    assert_eq!(log(&mut device), ["finished"]);
    device.world().queued.clear();
    device.call("queue_many", None).unwrap();
    assert_eq!(device.world().queued.len(), 100);
    assert_eq!(device.world().queued[0].parameter.as_deref(), Some(&b""[..]));
}

#[test]
fn memory_of_one_call_is_there_for_the_next() {
    let mut device = device();
    device.call("hundred", None).unwrap();
    let memory_bytes = device.memory_bytes();
    for _ in 0..20 {
        device.call("hundred", None).unwrap();
    }
    assert_eq!(device.memory_bytes(), memory_bytes);
}

fn greedy(prepare: impl FnOnce(&mut common::device::World)) -> Device {
    let workbench = Workbench::new();
    let description = format!("{PROJECT}[budget]\nmemory_bytes = 65536\n");
    workbench.write(&[("nihilo/tenure.toml", &description), ("nihilo/src/root.cpp", GREEDY)]);
    Device::with(&workbench.build("nihilo"), prepare)
}

#[test]
fn calls_for_which_the_queue_has_no_room_wait_and_all_of_them_run_in_order() {
    let mut device = greedy(|world| world.queue_length = Some(8));
    device.call("hundred", None).unwrap();
    let mut ran = Vec::new();
    while !device.world().queued.is_empty() {
        let task = device.world().queued.remove(0);
        let parameter = task.parameter.map(|bytes| String::from_utf8(bytes).unwrap());
        device.call(&task.function, parameter.as_deref()).unwrap();
        if task.function == "test" {
            ran.push(parameter.unwrap());
            if !task.on_success.is_empty() {
                device.call(&task.on_success, None).unwrap();
            }
        }
    }
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(ran, expected);
}

#[test]
fn call_that_cannot_be_queued_for_good_fails_as_one_that_was() {
    let mut device = greedy(|world| world.refused.push("denied".into()));
    device.call("away", None).unwrap();
    let task = device.world().queued.pop().unwrap();
    assert_eq!((task.target.as_str(), task.function.as_str()), ("", "failed"));
    assert_eq!(task.parameter.as_deref(), Some(&b"denied"[..]));
}

#[test]
fn object_takes_the_place_of_a_string_above_it() {
    let mut device = greedy(|_| ());
    device.call("write", None).unwrap();
    let tree = &device.world().tree;
    let tree: Vec<_> = tree.iter().map(|(path, value)| (path.as_str(), value.as_slice())).collect();
    assert_eq!(tree, [("M.N.C.Str", &b"x"[..]), ("M.O", b"kept")]);
}

#[test]
fn path_that_is_none_changes_nothing() {
    let mut device = greedy(|_| ());
    device.call("write", None).unwrap();
    let before = device.world().tree.clone();
    device.call("clear", None).unwrap();
    assert_eq!(device.world().tree, before);
    assert_eq!(log(&mut device).len(), 3, "each is told of");
}

#[test]
fn string_of_4000_characters_comes_back_whole_and_is_logged_whole() {
    let mut device = greedy(|_| ());
    assert_eq!(device.call("lengths", None), Ok(Some("same".into())));
    let lines = log(&mut device);
    assert_eq!(lines.concat().len(), 4000);
    assert!(lines.iter().all(|line| line.len() <= 256));
    assert_eq!(device.world().tree.keys().collect::<Vec<_>>(), ["long"]);
}

fn log(device: &mut Device) -> Vec<String> {
    std::mem::take(&mut device.world().log)
}
