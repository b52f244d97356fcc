#include <nihilo.h>

NIH_VOID(entry, param){}
NIH_CHARS(RPC, param){
  //write "hello, world" into M.N in persistent JSON
  writeString("M.N", "hello, world");
  //read value back out of JSON
  char* ret;
  readString("M.N", &ret);
  return ret;
}
