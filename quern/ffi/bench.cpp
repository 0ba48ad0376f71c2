// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The command `quern` with providers and a plotter that are Python's, for quern.bench.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <string>
#include <utility>
#include <vector>

#include "quern/bench/guests.h"
#include "quern/cli/command_line.h"
#include "quern/ffi/error.h"

namespace quern::ffi {

namespace {

using tvm::ffi::Any;
using tvm::ffi::Array;
using tvm::ffi::Function;
using tvm::ffi::String;

/// Calls `body`. What Python throws leaves as an error of quern: NotImplementedError is `unsupported`, everything else a failure of the
/// guest.
template <class Body> decltype(auto) guarded(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const tvm::ffi::Error& e) {
    throw Error(std::string(e.kind()) == exception_name(ErrorKind::unsupported) ? ErrorKind::unsupported : ErrorKind::device,
                std::string(e.message()));
  }
}

bench::Guest guest_of(const std::string& name, const std::string& missing, const Function& make) {
  return {name, missing, [name, make](const std::string& request) {
            return guarded([&] {
              const Array<Any> made = make(String(name), String(request)).cast<Array<Any>>();
              const Function run = made[1].cast<Function>(), deliver = made[2].cast<Function>(), memory = made[3].cast<Function>();
              bench::GuestCall call;
              call.description = std::string(made[0].cast<String>());
              call.run = [run](int set) { guarded([&] { run(int64_t(set)); }); };
              call.deliver = [deliver](int set) { guarded([&] { deliver(int64_t(set)); }); };
              call.memory = [memory](int set) { return guarded([&] { return memory(int64_t(set)).cast<double>(); }); };
              return call;
            });
          }};
}

/// What `quern` does with `words`, and its exit code. `missing`: of each provider what it would need, empty where it is here.
/// make(provider, request) returns [description, run(set), deliver(set), memory(set)] (bench/guests.h); plot(csv, ops) draws.
int64_t bench_command(const Array<String>& words, const Array<String>& providers, const Array<String>& missing, const Function& make,
                      const Function& plot) {
  for (size_t i = 0; i < providers.size(); ++i)
    bench::add_guest(guest_of(std::string(providers[int64_t(i)]), std::string(missing[int64_t(i)]), make));
  bench::set_plotter([plot](const std::string& csv, const std::vector<std::string>& ops) {
    guarded([&] {
      Array<String> list;
      for (const std::string& op : ops) list.push_back(op);
      plot(String(csv), list);
    });
  });
  std::vector<std::string> texts = {"quern"};
  for (const String& word : words) texts.emplace_back(word);
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  return cli::command_line(int(texts.size()), argv.data());
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(bench_command, bench_command)

}  // namespace quern::ffi
