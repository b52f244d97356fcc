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

fn log(device: &mut Device) -> Vec<String> {
    std::mem::take(&mut device.world().log)
}
