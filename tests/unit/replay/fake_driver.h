// A CUDA driver in host memory, for tests of a session without a GPU. It launches nothing. It knows the streams that the test says
// are captured, keeps what graphs keep, and refuses what a driver refuses beside a capture.
//
//   FakeDriver& driver = FakeDriver::fresh();
//   auto session = open_session(driver.api, {});
//   driver.captures[&stream] = 1;                 // a capture of this number into graph 1 is under way
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "replay/cuda/libraries.h"

namespace fusebox::testing {

class FakeDriver {
 public:
  static constexpr int kInvalid = 1, kUnsupportedInCapture = 900;

  struct UserObject {
    void* thing;
    void (*end)(void*);
    int references;
  };

  // The one driver, as if the process had just begun.
  static FakeDriver& fresh() {
    current() = FakeDriver();
    return current();
  }

  // Ends a graph, in the way of the driver: nothing that it calls back may call the driver.
  void end_graph(unsigned long long number) {
    std::vector<UserObject*> kept = std::move(graphs[number]);
    graphs.erase(number);
    is_ending_graph = true;
    for (UserObject* object : kept) release(object);
    is_ending_graph = false;
  }
  static void release(UserObject* object) {
    if (--object->references > 0) return;
    object->end(object->thing);
    --current().objects;
    delete object;
  }

  // The names of calls that were refused, since a capture was under way and the thread had not asked to be let alone, or
  // since a graph was ending.
  std::vector<std::string> refused;
  std::map<void*, unsigned long long> captures;  // by stream: the number of the capture, and its graph's
  std::map<unsigned long long, std::vector<UserObject*>> graphs;  // by number: what it keeps
  std::set<uint64_t> memory;                                      // allocated now
  std::set<void*> modules;                                        // loaded now
  std::vector<void*> waited_for;                                  // streams
  int whole_waits = 0, objects = 0, contexts = 0, questions = 0;  // `questions`: whether a stream is captured
  int mode = 0;                                                   // of the thread: 2 is relaxed
  int fills_fail = 0, retains_fail = 0, objects_fail = 0;         // the result of these calls
  bool is_ending_graph = false;
  DriverApi api = functions();

 private:
  static FakeDriver& current() {
    static FakeDriver driver;
    return driver;
  }
  // The result of a call that may end a capture of another thread.
  static int unsafe(const char* name) {
    FakeDriver& d = current();
    if (!d.is_ending_graph && (d.captures.empty() || d.mode == 2)) return 0;
    d.refused.push_back(name);
    return kUnsupportedInCapture;
  }
  // The result of any call.
  static int plain(const char* name) {
    if (!current().is_ending_graph) return 0;
    current().refused.push_back(name);
    return kUnsupportedInCapture;
  }
  static void* numbered(uintptr_t n) { return reinterpret_cast<void*>(n); }

  static DriverApi functions() {
    DriverApi a;
    a.cuGetErrorName = [](int, const char** s) { return *s = "CUDA_ERROR_OF_A_TEST", 0; };
    a.cuGetErrorString = [](int, const char** s) { return *s = "a test made it fail", 0; };
    a.cuDevicePrimaryCtxRetain = [](void** c, int) { return *c = numbered(1), ++current().contexts, 0; };
    a.cuDevicePrimaryCtxRelease = [](int) { return --current().contexts, plain("cuDevicePrimaryCtxRelease"); };
    a.cuCtxGetCurrent = [](void** c) { return *c = numbered(1), plain("cuCtxGetCurrent"); };
    a.cuCtxSetCurrent = [](void*) { return plain("cuCtxSetCurrent"); };
    a.cuThreadExchangeStreamCaptureMode = [](int* mode) { return std::swap(*mode, current().mode), 0; };
    add_modules(a);
    add_memory(a);
    add_streams(a);
    add_graphs(a);
    return a;
  }

  static void add_modules(DriverApi& a) {
    a.cuModuleLoadData = [](void** module, const void*) {
      if (const int code = unsafe("cuModuleLoadData")) return code;
      static uintptr_t last = 0x100;
      *module = numbered(++last);
      current().modules.insert(*module);
      return 0;
    };
    a.cuModuleUnload = [](void* module) {
      if (const int code = unsafe("cuModuleUnload")) return code;
      return current().modules.erase(module) == 1 ? 0 : kInvalid;
    };
    // A driver that loads kernels late loads them here.
    a.cuModuleGetFunction = [](void** f, void* module, const char* name) {
      if (std::string(name) == "missing") return kInvalid;
      return *f = module, unsafe("cuModuleGetFunction");
    };
    a.cuFuncGetAttribute = [](int* value, int, void*) { return *value = 0, unsafe("cuFuncGetAttribute"); };
    a.cuLaunchKernel = [](void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                          void**) { return plain("cuLaunchKernel"); };
  }

  static void add_memory(DriverApi& a) {
    a.cuMemAlloc = [](uint64_t* p, size_t bytes) {
      if (const int code = unsafe("cuMemAlloc")) return code;
      *p = reinterpret_cast<uint64_t>(std::malloc(bytes));
      current().memory.insert(*p);
      return 0;
    };
    a.cuMemFree = [](uint64_t p) {
      if (const int code = unsafe("cuMemFree")) return code;
      if (current().memory.erase(p) == 0) return kInvalid;
      std::free(reinterpret_cast<void*>(p));
      return 0;
    };
    a.cuMemsetD8Async = [](uint64_t, unsigned char, size_t, void*) {
      return current().fills_fail != 0 ? current().fills_fail : plain("cuMemsetD8Async");
    };
  }

  static void add_streams(DriverApi& a) {
    a.cuStreamCreate = [](void** s, unsigned) { return *s = numbered(0x77), plain("cuStreamCreate"); };
    a.cuStreamDestroy = [](void*) { return plain("cuStreamDestroy"); };
    a.cuStreamSynchronize = [](void* s) { return current().waited_for.push_back(s), unsafe("cuStreamSynchronize"); };
    // To wait for the whole GPU ends captures, whatever the thread asked for.
    a.cuCtxSynchronize = [] {
      ++current().whole_waits;
      if (current().captures.empty()) return plain("cuCtxSynchronize");
      current().refused.push_back("cuCtxSynchronize");
      return kUnsupportedInCapture;
    };
    a.cuStreamIsCapturing = [](void* s, int* is) {
      ++current().questions;
      return *is = current().captures.contains(s) ? 1 : 0, plain("cuStreamIsCapturing");
    };
    a.cuStreamGetId = [](void* s, unsigned long long* n) {
      return *n = reinterpret_cast<uintptr_t>(s), plain("cuStreamGetId");
    };
  }

  static void add_graphs(DriverApi& a) {
    a.cuStreamGetCaptureInfo = [](void* s, int* status, unsigned long long* number, void** graph, void* const**,
                                  size_t*) {
      const auto it = current().captures.find(s);
      *status = it == current().captures.end() ? 0 : 1;
      if (*status == 1) *number = it->second, *graph = numbered(it->second);
      return plain("cuStreamGetCaptureInfo");
    };
    a.cuUserObjectCreate = [](void** object, void* thing, void (*end)(void*), unsigned references, unsigned) {
      if (current().objects_fail != 0) return current().objects_fail;
      ++current().objects;
      *object = new UserObject{thing, end, static_cast<int>(references)};
      return 0;
    };
    a.cuUserObjectRelease = [](void* object, unsigned) { return release(static_cast<UserObject*>(object)), 0; };
    a.cuGraphRetainUserObject = [](void* graph, void* object, unsigned, unsigned) {
      if (current().retains_fail != 0) return current().retains_fail;
      current().graphs[reinterpret_cast<uintptr_t>(graph)].push_back(static_cast<UserObject*>(object));
      return 0;
    };
  }
};

}  // namespace fusebox::testing
